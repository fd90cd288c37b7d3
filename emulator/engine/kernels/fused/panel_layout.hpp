#pragma once

// What panels of operands consist of (fused_panels.hpp). Nothing here is of an instruction set: it
// is included before any is allowed.

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "emulator/engine/kernels/fused/fused_arithmetic.hpp"

namespace guardbit::emulator::fused {

inline constexpr int band_lines = 16;
/// Rows are taken four at a time, whose exponents stand side by side in the lanes of their columns.
inline constexpr int rows_together = 4;
constexpr double power_of_two(int exponent) {
  return __builtin_bit_cast(double, static_cast<std::uint64_t>(1023 + exponent) << 52);
}

/// What B's factors are multiplied by (fused_tile.hpp).
template <class Value>
inline constexpr Value nudge = 1 + (sizeof(Value) == 8 ? 0x1p-30 : 0x1p-20);
/// And by this, which makes sums as many times what they stand for.
template <class Value>
inline constexpr Value scale = sizeof(Value) == 8
                                   ? static_cast<Value>(power_of_two(fp64_scale_exponent))
                                   : Value{1};

/// What of a band's factors decides how its products are summed.
struct BandRange {
  /// exponents of its nonzero finite numbers; 0, 0 without any
  int lowest = 0, highest = 0;
  /// infinities or NaNs
  bool has_specials = false;

  void include(const BandRange& other) {
    lowest = std::min(lowest, other.lowest);
    highest = std::max(highest, other.highest);
    has_specials = has_specials || other.has_specials;
  }
};

/// One operand over a range of places, panel by panel. A panel's arrays, one after the other:
///   values  [place][lines]     FP64 or FP32; B's with the nudge
///   codes   [place][lines]     bytes: 64 + exponent - the band's lowest; 0 for zero
///   exponents [place][lines]   16 bits: (512 + exponent) << 4; 0 for zero. Only where asked for
///   signs   [group][2][lines]  bit i: factor i of the group is negative; is positive
/// B's codes, exponents and signs are repeated so that a tile's rows find them side by side.
struct PanelLayout {
  std::size_t values = 0, codes = 0, exponents = 0, signs = 0, size = 0;
  std::size_t value_step = 0, code_step = 0, exponent_step = 0, sign_step = 0;

  PanelLayout() = default;
  PanelLayout(std::size_t places, std::size_t groups, std::size_t value_bytes,
              std::size_t code_bytes, std::size_t exponent_bytes, std::size_t sign_bytes)
      : value_step(value_bytes),
        code_step(code_bytes),
        exponent_step(exponent_bytes),
        sign_step(sign_bytes) {
    const auto rounded = [](std::size_t bytes) { return (bytes + 63) / 64 * 64; };
    codes = rounded(places * value_step);
    exponents = codes + rounded(places * code_step);
    signs = exponents + rounded(places * exponent_step);
    size = signs + rounded(groups * sign_step);
  }
};

/// True if all products of the two stay in the normal range.
inline bool stays_normal(const BandRange& a, const BandRange& b) {
  return a.lowest + b.lowest >= lowest_product_exponent &&
         a.highest + b.highest <= highest_product_exponent && a.highest - a.lowest <= widest_span &&
         b.highest - b.lowest <= widest_span;
}

/// Places of K's products: whole blocks, or whole executions where those are more than a chain of
/// blocks.
inline std::int64_t places_of(const FusedInstruction& instruction, std::int64_t k) {
  const std::int64_t step =
      instruction.composition == Composition::chain ? instruction.block_k : instruction.execution_k;
  return (k + step - 1) / step * step;
}

}  // namespace guardbit::emulator::fused
