#pragma once

// Infinities, NaNs, zeros and extremes as words, for families of special inputs.

#include <cstdint>

#include "gpu/inputs/input_draw.hpp"

namespace guardbit::gpu {

constexpr std::uint64_t smallest_word(const OperandWords& f) {
  return std::uint64_t{1} << f.ignored;
}
constexpr std::uint64_t least_normal_word(const OperandWords& f) {
  return std::uint64_t{1} << f.fraction_bits;
}
constexpr std::uint64_t quiet_bit_word(const OperandWords& f) { return least_normal_word(f) >> 1; }
/// All magnitude bits: a NaN, or the largest number of a format without any.
constexpr std::uint64_t all_ones_word(const OperandWords& f) { return f.mask & ~f.sign; }

/// A NaN with a random payload, quiet or signalling, of either sign.
constexpr std::uint64_t nan_word(const OperandWords& f, Draw& draw) {
  const std::uint64_t sign = signed_zero(f, draw);
  if (!f.has_infinity) return sign | all_ones_word(f);
  std::uint64_t payload = draw.wide(f.fraction_bits);
  if (draw.coin()) return sign | f.infinity | payload | quiet_bit_word(f);
  payload &= ~quiet_bit_word(f);
  return sign | f.infinity | payload | smallest_word(f);
}

/// The largest finite number where the format has no infinity.
constexpr std::uint64_t infinite_word(const OperandWords& f, Draw& draw) {
  return (f.has_infinity ? f.infinity : f.largest) | signed_zero(f, draw);
}

/// Infinities and NaNs; `extremes` too: zeros, the ends of the subnormal and normal ranges.
constexpr std::uint64_t special_word(const OperandWords& f, Draw& draw, bool extremes) {
  const std::uint64_t sign = signed_zero(f, draw);
  switch (draw.take(extremes ? 4 : 3)) {
    case 0:
    case 1: return infinite_word(f, draw);
    case 2: return sign | (f.has_infinity ? f.infinity : all_ones_word(f));
    case 3: return sign | all_ones_word(f);  // largest payload
    case 4:                                  // smallest payload
      return sign | (f.has_infinity ? f.infinity | smallest_word(f) : all_ones_word(f));
    case 5:  // quiet, no payload
      return sign | (f.has_infinity ? f.infinity | quiet_bit_word(f) : all_ones_word(f));
    case 6:
    case 7: return nan_word(f, draw);
    case 8: return sign;
    case 9: return sign | smallest_word(f);
    case 10: return sign | (least_normal_word(f) - smallest_word(f));
    case 11: return sign | least_normal_word(f);
    case 12:
    case 13: return sign | f.largest;
    case 14: return sign | finite_word(f, draw);
    default: return sign | word_with_exponent(f, false, 0, 0);
  }
}

}  // namespace guardbit::gpu
