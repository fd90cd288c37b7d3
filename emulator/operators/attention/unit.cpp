#include "emulator/operators/attention/unit.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>
#include <string_view>

#include "emulator/catalogue/instruction_catalogue.hpp"
#include "emulator/engine/engines.hpp"
#include "emulator/operators/operator_tensor.hpp"

namespace guardbit::emulator::attention {
namespace {

/// elements of K that a step of TF32 takes
constexpr std::int64_t step = 8;
/// pieces of one step: small * big, big * small, big * big
constexpr std::int64_t pieces = 3;
/// steps of the shared-memory tile of a kernel with FP32 operands
constexpr std::int64_t tile_steps = 4;

MatrixInstruction instruction_for(const formats::Format& type, int products) {
  const std::string_view name = type == formats::fp16   ? "f16"
                                : type == formats::bf16 ? "bf16"
                                                        : "tf32";
  const std::string operand(name);
  return require_instruction("sm_90",
                             "mma.sync.aligned.m16n8k" + std::to_string(products) +
                                 ".row.col.f32." + operand + "." + operand + ".f32",
                             "attention");
}

std::uint32_t big_piece(float x) { return std::bit_cast<std::uint32_t>(x) & 0xffffe000U; }

/// The rest as a TF32 number: half a unit is added, then the low bits are cut.
std::uint32_t small_piece(float x) {
  const float rest = x - std::bit_cast<float>(big_piece(x));
  std::uint32_t bits = std::bit_cast<std::uint32_t>(rest);
  if ((bits & 0x7f800000U) != 0x7f800000U) bits += 0x1000U;
  return bits & 0xffffe000U;
}

}  // namespace

Unit::Unit(const formats::Format& type, int products)
    : type_(type),
      instruction_(instruction_for(type, type == formats::fp32 ? step : products)),
      engine_(&require_engine("auto", instruction_)) {}

Lines Unit::pack(Side side, const Numbers& numbers, std::int64_t lines, std::int64_t k,
                 bool residue_first) const {
  Lines packed;
  if (!is_cut()) {
    std::vector<float> row(static_cast<std::size_t>(lines * k));
    for (std::int64_t i = 0; i < lines; ++i) {
      for (std::int64_t j = 0; j < k; ++j)
        row[i * k + j] = numbers.data[i * numbers.line_stride + j * numbers.k_stride];
    }
    const operators::Tensor tensor = operators::tensor_of_numbers(type_, {lines, k}, row);
    packed.codes.assign(tensor.bytes.begin(), tensor.bytes.end());
    packed.k = k;
    packed.line_bytes = k * 2;
    return packed;
  }
  constexpr std::int64_t tile = step * tile_steps;
  const std::int64_t residue = residue_first ? k % tile : 0;
  packed.k = (k + step - 1) / step * step;
  if (residue != 0) packed.k = (k + tile - 1) / tile * tile;
  packed.line_bytes = packed.k * pieces * 4;
  packed.codes.resize(static_cast<std::size_t>(lines * packed.line_bytes));
  for (std::int64_t i = 0; i < lines; ++i) {
    std::byte* const line = packed.codes.data() + i * packed.line_bytes;
    for (std::int64_t j = 0; j < k; ++j) {
      const float x = numbers.data[i * numbers.line_stride + j * numbers.k_stride];
      const std::uint32_t big = big_piece(x), small = small_piece(x);
      const std::array<std::uint32_t, 3> of_a = {small, big, big}, of_b = {big, small, big};
      const auto& codes = side == Side::a ? of_a : of_b;
      for (std::int64_t p = 0; p < pieces; ++p) {
        const std::int64_t place = j < residue || residue == 0 ? j : j - residue + tile;
        const std::int64_t at = (place / step * pieces + p) * step + place % step;
        std::memcpy(line + at * 4, &codes[static_cast<std::size_t>(p)], 4);
      }
    }
  }
  return packed;
}

void Unit::run(const Part& a, const Part& b, std::int64_t m, std::int64_t n, std::int64_t k,
               float* d, std::int64_t d_stride, bool is_fresh) const {
  const int bytes = is_cut() ? 4 : 2;
  const std::int64_t factor = is_cut() ? pieces : 1;
  const auto from = [&](const Part& part) {
    return part.lines.codes.data() + part.first * part.lines.line_bytes + part.k * factor * bytes;
  };
  MatrixProduct product;
  product.m = m;
  product.n = n;
  product.k = is_cut() ? (k + step - 1) / step * step * pieces : k;
  product.a = {codes_of(instruction_.a, from(a)), a.lines.line_bytes / bytes, 1};
  product.b = {codes_of(instruction_.b, from(b)), 1, b.lines.line_bytes / bytes};
  product.d = {codes_of(formats::fp32, reinterpret_cast<std::byte*>(d)), d_stride, 1};
  product.c = {codes_of(formats::fp32, reinterpret_cast<const std::byte*>(d)), d_stride, 1};
  product.modifiers.zero_addend = is_fresh;
  emulator::multiply(*engine_, instruction_, product, 1);
}

void Unit::multiply(const Part& a, const Part& b, std::int64_t m, std::int64_t n, std::int64_t k,
                    float* d, std::int64_t d_stride, bool is_fresh) const {
  if (m == 0 || n == 0) return;
  if (is_fresh) {
    for (std::int64_t i = 0; i < m; ++i) std::fill_n(d + i * d_stride, n, 0.0F);
  }
  if (k == 0) return;
  if (!is_cut()) return run(a, b, m, n, k, d, d_stride, is_fresh);
  std::vector<float> sum(static_cast<std::size_t>(m * n));
  // The accumulator takes what has been summed after the first step of every tile.
  for (std::int64_t begin = 0, end = step; begin < k; begin = end, end += step * tile_steps) {
    const std::int64_t count = std::min(end, k) - begin;
    run({a.lines, a.first, a.k + begin}, {b.lines, b.first, b.k + begin}, m, n, count, sum.data(),
        n, true);
    for (std::int64_t i = 0; i < m; ++i) {
      for (std::int64_t j = 0; j < n; ++j) d[i * d_stride + j] += sum[i * n + j];
    }
  }
}

}  // namespace guardbit::emulator::attention
