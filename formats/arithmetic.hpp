#pragma once

#include <cstdint>

#include "formats/codec.hpp"
#include "formats/format.hpp"
#include "formats/rounding.hpp"
#include "formats/value.hpp"

// Exact operations on decoded values, with the rules of IEEE 754-2019 for signs of zero and invalid
// operands. Results are Unrounded; `encode` rounds them once into any format. A NaN result carries
// the first NaN operand's sign and payload.
namespace guardbit::formats {

constexpr Unrounded unrounded_nan(const Unrounded& x, const Unrounded& y) {
  const Unrounded& first = x.kind == Kind::nan ? x : y;
  return {Kind::nan, first.negative, 0, first.significand | quiet_bit, false};
}
constexpr Unrounded invalid_operation() { return exactly(nan_value()); }

/// The same number with its leading one at the top of the word; it must not have a tail.
constexpr Unrounded normalised(Unrounded x) {
  const int shift = 127 - leading_bit(x.significand);
  x.significand <<= shift;
  x.exponent -= shift;
  return x;
}

/// x + y, of numbers without tails. An exact zero sum is +0, or -0 when rounding downward
/// (`toward_minus`).
constexpr Unrounded add(const Unrounded& x, const Unrounded& y, bool toward_minus = false) {
  if (x.kind == Kind::nan || y.kind == Kind::nan) return unrounded_nan(x, y);
  if (x.kind == Kind::infinity || y.kind == Kind::infinity) {
    if (x.kind == y.kind && x.negative != y.negative) return invalid_operation();
    return x.kind == Kind::infinity ? x : y;
  }
  if (x.kind == Kind::zero && y.kind == Kind::zero) {
    return exactly(zero_value(x.negative == y.negative ? x.negative : toward_minus));
  }
  if (x.kind == Kind::zero) return y;
  if (y.kind == Kind::zero) return x;

  Unrounded large = normalised(x);
  Unrounded small = normalised(y);
  if (small.exponent > large.exponent ||
      (small.exponent == large.exponent && small.significand > large.significand)) {
    const Unrounded swap = large;
    large = small;
    small = swap;
  }
  const int distance = large.exponent - small.exponent;
  const uint128 aligned = distance >= 128 ? 0 : small.significand >> distance;
  Unrounded sum = large;
  sum.sticky = lost_by_shift(small.significand, distance, false) != Lost::nothing;
  if (x.negative == y.negative) {
    sum.significand += aligned;
    if (sum.significand < aligned) {  // the carry out of the word
      sum.sticky = sum.sticky || (sum.significand & 1) != 0;
      sum.significand = sum.significand >> 1 | uint128{1} << 127;
      sum.exponent += 1;
    }
    return sum;
  }
  // large - (aligned + tail) = (large - aligned - 1) + (1 - tail)
  sum.significand -= aligned + (sum.sticky ? 1 : 0);
  if (sum.significand == 0 && !sum.sticky) return exactly(zero_value(toward_minus));
  return sum;
}

/// x - y, with the zeros of `add`.
constexpr Unrounded subtract(const Unrounded& x, const Unrounded& y, bool toward_minus = false) {
  Unrounded opposite = y;
  opposite.negative = y.negative != (y.kind != Kind::nan);
  return add(x, opposite, toward_minus);
}

/// x * y; significands of at most 64 bits each.
constexpr Unrounded multiply(const Value& x, const Value& y) {
  const bool negative = x.negative != y.negative;
  if (x.kind == Kind::nan || y.kind == Kind::nan) return unrounded_nan(exactly(x), exactly(y));
  if (x.kind == Kind::infinity || y.kind == Kind::infinity) {
    if (x.kind == Kind::zero || y.kind == Kind::zero) return invalid_operation();
    return exactly(infinity_value(negative));
  }
  if (x.kind == Kind::zero || y.kind == Kind::zero) return exactly(zero_value(negative));
  return {Kind::finite, negative, x.exponent + y.exponent, uint128{x.significand} * y.significand,
          false};
}

/// x * y + z, exact up to the one rounding of the result. Inf * 0 is invalid whatever z is, unless
/// z is a NaN: then that is the result.
constexpr Unrounded fused_multiply_add(const Value& x, const Value& y, const Value& z,
                                       bool toward_minus = false) {
  if (z.kind == Kind::nan && x.kind != Kind::nan && y.kind != Kind::nan) {
    return unrounded_nan(exactly(z), exactly(z));
  }
  return add(multiply(x, y), exactly(z), toward_minus);
}

/// x / y. Division of a finite number by zero is an infinity.
constexpr Unrounded divide(const Value& x, const Value& y) {
  const bool negative = x.negative != y.negative;
  if (x.kind == Kind::nan || y.kind == Kind::nan) return unrounded_nan(exactly(x), exactly(y));
  if (x.kind == y.kind && (x.kind == Kind::infinity || x.kind == Kind::zero))
    return invalid_operation();
  if (x.kind == Kind::infinity || y.kind == Kind::zero) return exactly(infinity_value(negative));
  if (x.kind == Kind::zero || y.kind == Kind::infinity) return exactly(zero_value(negative));
  // 128 bits over at most 64 give at least 64; a second step fills the word, for roundings that
  // look far below the last place.
  const Unrounded dividend = normalised(exactly(x));
  const uint128 divisor = y.significand;
  const uint128 quotient = dividend.significand / divisor;
  const int spare = 127 - leading_bit(quotient);
  const uint128 rest = dividend.significand % divisor << spare;
  return {Kind::finite, negative, dividend.exponent - y.exponent - spare,
          (quotient << spare) + rest / divisor, rest % divisor != 0};
}

/// The square root; of -0 it is -0, of anything else below zero NaN.
constexpr Unrounded square_root(const Value& x) {
  if (x.kind == Kind::nan) return unrounded_nan(exactly(x), exactly(x));
  if (x.kind == Kind::zero) return exactly(x);
  if (x.negative) return invalid_operation();
  if (x.kind == Kind::infinity) return exactly(x);
  // Digit by digit: each step takes two bits of the radicand, zeros after the last, and gives one
  // of the root. Four times the rest of a root of 120 bits still fits the word.
  constexpr int steps = 120;
  const Unrounded normal = normalised(exactly(x));
  const int odd = normal.exponent % 2 != 0 ? 1 : 0;
  uint128 radicand = normal.significand >> odd;  // at most 64 bits were there: nothing is lost
  uint128 root = 0;
  uint128 rest = 0;
  for (int step = 0; step < steps; ++step) {
    rest = rest << 2 | radicand >> 126;
    radicand <<= 2;
    const uint128 trial = root << 2 | 1;
    root <<= 1;
    if (rest >= trial) {
      rest -= trial;
      root |= 1;
    }
  }
  return {Kind::finite, false, (normal.exponent + odd) / 2 - (steps - 64), root, rest != 0};
}

}  // namespace guardbit::formats
