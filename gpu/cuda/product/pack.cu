#include <algorithm>

#include "emulator/model/dot.hpp"
#include "gpu/cuda/device/device.hpp"
#include "gpu/cuda/product/pack.hpp"

namespace guardbit::gpu {

namespace {

constexpr int warps = 8;
/// a count of low factors that no block allows
constexpr unsigned refused = 1000;

__device__ std::uint64_t code_at(const PackArguments& p, int line, std::int64_t k) {
  const std::size_t at = p.shape.is_a
                             ? static_cast<std::size_t>(line) * static_cast<std::size_t>(p.k) +
                                   static_cast<std::size_t>(k)
                             : static_cast<std::size_t>(k) * static_cast<std::size_t>(p.lines) +
                                   static_cast<std::size_t>(line);
  switch (formats::container_bits(p.format)) {
    case 8: return reinterpret_cast<const std::uint8_t*>(p.codes)[at];
    case 16: return reinterpret_cast<const std::uint16_t*>(p.codes)[at];
    default:
      return reinterpret_cast<const std::uint32_t*>(p.codes)[at] >>
             formats::container_shift(p.format);
  }
}

/// One warp makes one record: lanes share a line's products. The fragments are those of the PTX ISA
/// for mma.m16n8k16 of FP64 and BF16 and m16n8k32 of bytes (two per product), or their halves.
__global__ void pack_operand(const __grid_constant__ PackArguments p, int first_y) {
  extern __shared__ uint4 shared_memory[];
  const PackedShape& shape = p.shape;
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int lines = shape.lines(), terms = shape.terms;
  // Neighbouring warps read neighbouring codes: along k for A, along the columns for B.
  const int x = static_cast<int>(blockIdx.x) * warps + warp;
  const int y = first_y + static_cast<int>(blockIdx.y);
  const int block = shape.is_a ? x : y, panel = shape.is_a ? y : x;
  if (block >= p.stages * shape.blocks || panel >= p.tiles * shape.panels) return;

  const int record_bytes = shape.record_bytes();
  auto* const record = reinterpret_cast<std::byte*>(shared_memory) + warp * record_bytes;
  auto* const words = reinterpret_cast<std::uint32_t*>(record);
  auto* const halves = reinterpret_cast<std::uint16_t*>(record);
  for (int i = lane; i < record_bytes / 4; i += 32) words[i] = 0;
  __syncwarp();

  const int line = lane % lines, part = lane / lines, parts = 32 / lines;
  const int per_lane = terms / parts;
  const int global_line = panel * lines + line;
  const formats::Format aligned =
      p.instruction.step.widened ? *p.instruction.step.widened : p.format;
  const auto value_of = [&](int i) {
    const std::int64_t k = source_k(p.instruction, block, i);
    if (global_line >= p.lines || k >= p.k) return formats::zero_value(false);
    return emulator::decode_operand(p.instruction.step, p.format, code_at(p, global_line, k));
  };
  int largest = no_exponent;
  bool special = false;
  unsigned nonzero = 0;
  for (int i = part * per_lane; i < (part + 1) * per_lane; ++i) {
    const formats::Value v = value_of(i);
    special |= v.kind > formats::Kind::finite;
    if (v.kind == formats::Kind::finite) {
      largest = max(largest, emulator::aligned_exponent(v, aligned));
      nonzero |= 1U << i;
    }
  }
  for (int step = lines; step < 32; step *= 2) {
    largest = max(largest, __shfl_xor_sync(~0U, largest, step));
    nonzero |= __shfl_xor_sync(~0U, nonzero, step);
  }

  const ExponentWindow window = exponent_window(terms);
  const int highs = shape.is_a ? terms / 2 : terms / 4;
  const int weights = PackedShape::weight_words(terms, shape.is_a);
  // Word `w` of lane `l` lies in plane w / 4.
  const auto word_index = [](int w, int l) { return w / 4 * 128 + l * 4 + w % 4; };
  unsigned high = 0;
  for (int i = part * per_lane; i < (part + 1) * per_lane; ++i) {
    const formats::Value v = value_of(i);
    const int relative =
        v.kind == formats::Kind::finite ? emulator::aligned_exponent(v, aligned) - largest : 0;
    high |= is_low(window, v, relative) ? 0 : 1U << i;
    const int high_half = line / 8, in_16 = i % 16;
    const int high_word_at = shape.is_a ? i / 4 * 2 + high_half : i / 4;
    words[word_index(high_word_at, line % 8 * 4 + i % 4)] = high_word(v);
    std::uint16_t weight = 0;
    if (v.kind > formats::Kind::finite) weight = special_weight;
    if (v.kind == formats::Kind::finite)
      weight = shape.is_a ? a_weight(window, relative) : b_weight(window, relative);
    const std::uint16_t signs = shape.is_a ? a_signs(v) : b_signs(v);
    const int w = shape.is_a ? i / 16 * 4 + high_half + in_16 / 8 * 2 : i / 16 * 2 + in_16 / 8;
    const int to_lane = line % 8 * 4 + in_16 % 8 / 2;
    halves[word_index(highs + w, to_lane) * 2 + i % 2] = weight;
    halves[word_index(highs + weights + w, to_lane) * 2 + i % 2] = signs;
  }
  for (int step = lines; step < 32; step *= 2) {
    high |= __shfl_xor_sync(~0U, high, step);
    special |= __shfl_xor_sync(~0U, special ? 1 : 0, step) != 0;
  }
  const bool unsafe = p.instruction.any_exponents && largest != no_exponent &&
                      (largest < lowest_line_exponent(window) || largest > highest_line_exponent);
  unsigned low = static_cast<unsigned>(terms - __popc(high));
  if (special || unsafe) {
    high = 0;
    low = refused;
  }
  if (global_line >= p.lines) {  // outputs nobody reads
    high = ~0U;
    low = 0;
  }
  low = __reduce_max_sync(~0U, low);

  if (part == 0) {
    const int bias = shape.is_a ? offset_bias(window, p.instruction.kept_fraction_bits) : 0;
    // A row g of A goes with row g + 8.
    const int at = shape.is_a ? line % 8 * 2 + line / 8 : line;
    words[shape.exponents_offset() / 4 + at] =
        static_cast<std::uint32_t>((largest + bias) * (1 << exponent_shift));
    words[shape.masks_offset() / 4 + 2 * at] = nonzero;
    words[shape.masks_offset() / 4 + 2 * at + 1] = high;
  }
  if (lane == 0) atomicMax(p.low + panel / shape.panels * p.stages + block / shape.blocks, low);
  __syncwarp();

  const std::size_t index =
      ((static_cast<std::size_t>(panel / shape.panels) * static_cast<std::size_t>(p.stages) +
        static_cast<std::size_t>(block / shape.blocks)) *
           static_cast<std::size_t>(shape.panels) +
       static_cast<std::size_t>(panel % shape.panels)) *
          static_cast<std::size_t>(shape.blocks) +
      static_cast<std::size_t>(block % shape.blocks);
  auto* const to =
      reinterpret_cast<uint4*>(p.packed + index * static_cast<std::size_t>(record_bytes));
  const auto* const from = reinterpret_cast<const uint4*>(record);
  for (int i = lane; i < record_bytes / 16; i += 32) to[i] = from[i];
}

}  // namespace

std::size_t packed_bytes(const PackArguments& p) {
  return static_cast<std::size_t>(p.tiles) * static_cast<std::size_t>(p.stages) *
         static_cast<std::size_t>(p.shape.stage_bytes());
}

void pack(const PackArguments& p) {
  const int blocks = p.stages * p.shape.blocks, panels = p.tiles * p.shape.panels;
  const int x = p.shape.is_a ? blocks : panels, y = p.shape.is_a ? panels : blocks;
  check_cuda(cudaMemsetAsync(p.low, 0,
                             sizeof(unsigned) * static_cast<std::size_t>(p.tiles) *
                                 static_cast<std::size_t>(p.stages)),
             "packing");
  constexpr int most_y = 65535;
  for (int first_y = 0; first_y < y; first_y += most_y) {
    const dim3 grid(static_cast<unsigned>((x + warps - 1) / warps),
                    static_cast<unsigned>(std::min(most_y, y - first_y)));
    const auto shared = static_cast<std::size_t>(warps * p.shape.record_bytes());
    pack_operand<<<grid, warps * 32, shared>>>(p, first_y);
    check_cuda(cudaGetLastError(), "packing");
  }
}

}  // namespace guardbit::gpu
