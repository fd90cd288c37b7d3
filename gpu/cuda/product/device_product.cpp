#include "gpu/cuda/product/device_product.hpp"

#include <algorithm>

#include "formats/support/error.hpp"
#include "gpu/cuda/model/device_model.hpp"
#include "gpu/cuda/product/pack.hpp"

namespace guardbit::gpu {

namespace {

using formats::Format;

constexpr const char* where = "gemm";

int divided_up(std::int64_t x, int by) { return static_cast<int>((x + by - 1) / by); }

PackArguments pack_arguments(const TunedInstruction& instruction, const PackedShape& shape,
                             const std::byte* codes, int lines, int k, int tile_lines) {
  PackArguments p{};
  p.codes = codes;
  p.lines = lines;
  p.k = k;
  p.tiles = divided_up(lines, tile_lines);
  p.stages = divided_up(block_count(instruction, k), shape.blocks);
  p.format = shape.is_a ? instruction.a : instruction.b;
  p.shape = shape;
  p.instruction = instruction;
  return p;
}

PackArguments pack_a(const TunedInstruction& instruction, const TunedKernel& kernel,
                     const std::byte* codes, int m, int k) {
  return pack_arguments(instruction, kernel.a, codes, m, k, kernel.rows);
}

PackArguments pack_b(const TunedInstruction& instruction, const TunedKernel& kernel,
                     const std::byte* codes, int n, int k) {
  return pack_arguments(instruction, kernel.b, codes, n, k, kernel.columns);
}

std::size_t low_bytes(const PackArguments& p) {
  return sizeof(unsigned) * static_cast<std::size_t>(p.tiles) * static_cast<std::size_t>(p.stages);
}

/// A contiguous part of row-major codes.
DeviceElements elements_from(const Format& f, const std::byte* codes, std::int64_t index) {
  const int bytes = formats::container_bits(f) / 8;
  return {const_cast<std::byte*>(codes) + index * bytes, bytes};
}

std::size_t bytes_of(const Format& f, std::int64_t elements) {
  return static_cast<std::size_t>(elements * (formats::container_bits(f) / 8));
}

/// Copies `rows` rows of `width` elements between row-major matrices of the given strides.
void copy_rows(const Format& f, std::byte* to, std::int64_t to_stride, const std::byte* from,
               std::int64_t from_stride, std::int64_t rows, std::int64_t width) {
  check_cuda(cudaMemcpy2DAsync(to, bytes_of(f, to_stride), from, bytes_of(f, from_stride),
                               bytes_of(f, width), static_cast<std::size_t>(rows),
                               cudaMemcpyDeviceToDevice),
             where);
}

}  // namespace

std::int64_t block_count(const TunedInstruction& instruction, int k) {
  const std::int64_t executions =
      (std::int64_t{k} + instruction.execution_k - 1) / instruction.execution_k;
  return executions * (instruction.execution_k / instruction.terms);
}

bool tuned_takes(const TunedInstruction& instruction, int k) {
  int shared_bytes = 0;
  check_cuda(cudaDeviceGetAttribute(&shared_bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0),
             where);
  return k > 0 && (!instruction.any_exponents || block_count(instruction, k) <= most_blocks) &&
         tuned_kernel(instruction).shared_bytes <= shared_bytes;
}

TunedKernel tuned_kernel(const TunedInstruction& instruction) {
  std::optional<TunedKernel> kernel;
  if (instruction.composed) {
    kernel = composed_kernel(instruction);
  } else {
    switch (instruction.accumulated) {
      case Accumulated::fp32: kernel = fp32_kernel(instruction); break;
      case Accumulated::e8m13: kernel = e8m13_kernel(instruction); break;
      case Accumulated::fp16: kernel = fp16_kernel(instruction); break;
    }
  }
  if (!kernel) throw formats::Error(where, "the tuned kernel has no instance for this instruction");
  return *kernel;
}

TunedMultiplication::TunedMultiplication(const TunedInstruction& instruction,
                                         const DeviceMatrices& x)
    : kernel_(tuned_kernel(instruction)),
      a_packed_(packed_bytes(pack_a(instruction, kernel_, x.a, x.m, x.k)), where),
      b_packed_(packed_bytes(pack_b(instruction, kernel_, x.b, x.n, x.k)), where),
      a_low_(low_bytes(pack_a(instruction, kernel_, x.a, x.m, x.k)), where),
      b_low_(low_bytes(pack_b(instruction, kernel_, x.b, x.n, x.k)), where) {
  MultiplyArguments& p = arguments_;
  p.a_packed = a_packed_.as<std::byte>();
  p.b_packed = b_packed_.as<std::byte>();
  p.a_low = a_low_.as<unsigned>();
  p.b_low = b_low_.as<unsigned>();
  p.a = x.a;
  p.b = x.b;
  p.c = x.c;
  p.d = x.d;
  p.m = x.m;
  p.n = x.n;
  p.k = x.k;
  p.tiles_m = divided_up(x.m, kernel_.rows);
  p.tiles_n = divided_up(x.n, kernel_.columns);
  p.stages = divided_up(block_count(instruction, x.k), kernel_.a.blocks);
  p.rule = offset_rule(instruction);
  p.instruction = instruction;
}

void TunedMultiplication::pack() const {
  const MultiplyArguments& p = arguments_;
  PackArguments a = pack_a(p.instruction, kernel_, p.a, p.m, p.k);
  a.packed = a_packed_.as<std::byte>();
  a.low = a_low_.as<unsigned>();
  guardbit::gpu::pack(a);
  PackArguments b = pack_b(p.instruction, kernel_, p.b, p.n, p.k);
  b.packed = b_packed_.as<std::byte>();
  b.low = b_low_.as<unsigned>();
  guardbit::gpu::pack(b);
}

void TunedMultiplication::multiply() const { kernel_.launch(arguments_); }

// Each step of the chain is one execution of an instruction as large as the matrices, or a slab of
// them.
void multiply_by_model(const emulator::MatrixInstruction& instruction, const DeviceMatrices& x) {
  constexpr std::int64_t outputs_per_slab = std::int64_t{1} << 22;
  const int length = instruction.shape.k;
  const int slab = static_cast<int>(std::clamp<std::int64_t>(outputs_per_slab / x.n, 1, x.m));
  const DeviceBuffer a_slice(bytes_of(instruction.a, std::int64_t{slab} * length), where);
  const DeviceBuffer b_slice(bytes_of(instruction.b, std::int64_t{length} * x.n), where);
  for (int begin = 0; begin < x.k; begin += length) {
    const int present = std::min(length, x.k - begin);
    const std::byte* b = x.b + bytes_of(instruction.b, std::int64_t{begin} * x.n);
    if (present < length) {
      b_slice.clear();
      a_slice.clear();
      copy_rows(instruction.b, b_slice.as<std::byte>(), x.n, b, x.n, present, x.n);
      b = b_slice.as<std::byte>();
    }
    for (int first = 0; first < x.m; first += slab) {
      const int rows = std::min(slab, x.m - first);
      copy_rows(instruction.a, a_slice.as<std::byte>(), length,
                x.a + bytes_of(instruction.a, std::int64_t{first} * x.k + begin), x.k, rows,
                present);
      emulator::Modifiers modifiers;
      modifiers.zero_addend = begin == 0 && x.c == nullptr;
      ModelInstruction model = model_instruction(instruction, modifiers);
      model.instruction.shape = {rows, x.n, length};
      DeviceOperands operands;
      operands.executions = 1;
      operands.a = elements_from(instruction.a, a_slice.as<std::byte>(), 0);
      operands.b = elements_from(instruction.b, b, 0);
      const std::int64_t output = std::int64_t{first} * x.n;
      const DeviceElements d = elements_from(instruction.d, x.d, output);
      operands.c = begin == 0 && x.c != nullptr ? elements_from(instruction.c, x.c, output) : d;
      run_reference(model, operands, {}, nullptr, d);
    }
  }
}

}  // namespace guardbit::gpu
