#pragma once

#include "tests/oracle/number.hpp"

namespace guardbit::oracle {

/// How a number between two neighbours becomes one of them.
struct Rounding {
  enum class Mode { nearest_even, nearest_away, toward_zero, upward, downward, to_odd, stochastic };
  Mode mode = Mode::nearest_even;
  /// Stochastic: the discarded part of the gap, as a fraction cut to `random_width` bits, plus
  /// `random_bits`; a carry out of the width takes the neighbour of larger magnitude. At most 64
  /// bits.
  std::uint64_t random_bits = 0;
  int random_width = 0;
};
inline constexpr Rounding nearest_even{Rounding::Mode::nearest_even};
inline constexpr Rounding nearest_away{Rounding::Mode::nearest_away};
inline constexpr Rounding toward_zero{Rounding::Mode::toward_zero};
inline constexpr Rounding upward{Rounding::Mode::upward};
inline constexpr Rounding downward{Rounding::Mode::downward};
inline constexpr Rounding to_odd{Rounding::Mode::to_odd};
constexpr Rounding stochastic(std::uint64_t random_bits, int random_width) {
  return {Rounding::Mode::stochastic, random_bits, random_width};
}

/// What happens to numbers that are too large, and to infinities.
/// to_infinity_or_nan is IEEE 754-2019 section 7.4: the directed modes that round away from the
/// overflow (and to_odd) give the largest finite number, the others infinity, else NaN, else the
/// largest finite.
struct Overflow {
  enum class Finite { to_infinity_or_nan, saturate };
  enum class Infinity { keep_or_nan, saturate };
  Finite finite = Finite::to_infinity_or_nan;
  Infinity infinity = Infinity::keep_or_nan;
};
inline constexpr Overflow ieee{};
inline constexpr Overflow saturate{Overflow::Finite::saturate, Overflow::Infinity::saturate};

/// The two consecutive representable magnitudes around a magnitude, as if no number were too large.
struct Neighbours {
  Dyadic low, high;
  std::uint64_t low_code = 0, high_code = 0;  // without a sign
  bool exact = false;                         // the magnitude is `low`
  bool beyond = false;                        // not below the first number past the largest one
};
/// By looking the magnitude up among all numbers of the format (formats of at most 16 bits).
Neighbours neighbours_by_table(const FormatParameters& format, const Dyadic& magnitude);
/// By the spacing that belongs to the magnitude's exponent.
Neighbours neighbours_by_exponent(const FormatParameters& format, const Dyadic& magnitude);

/// The code of a number in a format, rounded once.
///
/// Choices of ours where no standard speaks:
/// - Ties without an even choice (no fraction bits: every significand is 1) go to the larger
/// magnitude,
///   which is IEEE 754-2019 section 4.3.1; to_odd then keeps the smaller one.
/// - A format without zero (e8m0) gives its smallest number for zeros and everything below it.
/// - Negative numbers (not -0) in an unsigned floating format: NaN, or under saturation the
/// smallest
///   number (zero where there is one).
/// - NaN without a NaN code: the largest finite number; 0 in integers.
/// - Integers round to an integer, then saturate, under every policy.
/// - Without subnormals, zero and the smallest normal number are neighbours; zero counts as even.
std::uint64_t encode(const FormatParameters& format, const Number& number, const Rounding& rounding,
                     const Overflow& overflow = ieee);

}  // namespace guardbit::oracle
