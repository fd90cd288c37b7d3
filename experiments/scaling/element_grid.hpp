#pragma once

#include <bit>
#include <cassert>
#include <cmath>
#include <cstdint>

#include "formats/format.hpp"
#include "formats/value.hpp"

namespace guardbit::experiments {

/// A floating-point format with a sign as a grid of doubles, for passes over many elements that
/// need numbers and not codes.
///
/// Rounding by addition: let u be the format's unit at |y| (that of subnormals below the normal
/// range) and C = 1.5 * 2^52 * u. In [2^52 u, 2^53 u) doubles are multiples of u and of nothing
/// smaller, and C + y lies there since |y| < 2^(fraction bits + 1) u <= 2^51 u; so the addition
/// rounds C + y to a multiple of u, ties to the even multiple, and as C is an even multiple that
/// is y rounded to nearest even in units of u. Subtracting C is exact. It takes no more than 50
/// fraction bits, and units that are normal doubles, which those of FP32 and narrower are.
class ElementGrid {
 public:
  struct Rounded {
    double value = 0;
    /// `value` is the largest number then, with the sign of y
    bool is_past_largest = false;
  };

  explicit ElementGrid(const formats::Format& format)
      : fraction_bits_(format.fraction_bits),
        lowest_(static_cast<std::uint64_t>(min_exponent(format) + double_bias)),
        largest_(largest_of(format)) {
    assert(format.encoding == formats::Encoding::floating && format.has_sign &&
           format.has_subnormals && format.fraction_bits <= 50);
  }

  /// y is finite.
  Rounded nearest(double y) const {
    const auto exponent = (std::bit_cast<std::uint64_t>(y) >> 52) & 0x7FFU;
    const std::uint64_t top = exponent > lowest_ ? exponent : lowest_;
    // 2^52 u, which is normal: `top` is at least that of FP32's smallest normal number.
    const std::uint64_t shift = top + 52 - static_cast<std::uint64_t>(fraction_bits_);
    const double centre = 1.5 * std::bit_cast<double>(shift << 52);
    const double value = (y + centre) - centre;
    if (std::fabs(value) > largest_) return {std::copysign(largest_, y), true};
    return {value, false};
  }

  double largest() const { return largest_; }

 private:
  static constexpr int double_bias = 1023;

  static double largest_of(const formats::Format& format) {
    const std::uint64_t code = max_finite_code(format);
    const auto significand = static_cast<double>((code & fraction_mask(format)) |
                                                 (std::uint64_t{1} << format.fraction_bits));
    return std::ldexp(significand, max_exponent(format) - format.fraction_bits);
  }

  int fraction_bits_;
  std::uint64_t lowest_;
  double largest_;
};

}  // namespace guardbit::experiments
