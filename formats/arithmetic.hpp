#pragma once

#include <cstdint>

#include "formats/codec.hpp"
#include "formats/format.hpp"
#include "formats/rounding.hpp"
#include "formats/value.hpp"

// Exact operations on decoded values, with the rules of IEEE 754-2019 for signs of zero and invalid operands. Results are
// Unrounded; `encode` rounds them once into any format. A NaN result carries the first NaN operand's sign and payload.
namespace guardbit::formats {

constexpr Unrounded unrounded_nan(const Unrounded& x, const Unrounded& y) {
  const Unrounded& first = x.kind == Kind::nan ? x : y;
  return {Kind::nan, first.negative, 0, first.significand | quiet_bit, false};
}
constexpr Unrounded invalid_operation() { return exactly(nan_value()); }

/// Leading one at bit 126, so that one carry fits. Bits that fall off a full 128-bit word become the tail.
constexpr Unrounded normalised(Unrounded x) {
  const int shift = 126 - leading_bit(x.significand);
  if (shift < 0) {
    x.sticky = x.sticky || (x.significand & 1) != 0;
    x.significand >>= 1;
  } else {
    x.significand <<= shift;
  }
  x.exponent -= shift;
  return x;
}

/// x + y. An exact zero sum is +0, or -0 when rounding downward (`toward_minus`).
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
  const bool tail = small.sticky || lost_by_shift(small.significand, distance, false) != Lost::nothing;
  const uint128 aligned = distance >= 128 ? 0 : small.significand >> distance;
  Unrounded sum = large;
  sum.sticky = large.sticky || tail;
  if (x.negative == y.negative) {
    sum.significand += aligned;
    return sum;
  }
  // large - (aligned + tail) = (large - aligned - 1) + (1 - tail)
  sum.significand -= aligned + (tail ? 1 : 0);
  if (sum.significand == 0 && !sum.sticky) return exactly(zero_value(toward_minus));
  return sum;
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
  return {Kind::finite, negative, x.exponent + y.exponent, uint128{x.significand} * y.significand, false};
}

/// x * y + z, exact up to the one rounding of the result. Inf * 0 is invalid whatever z is, a quiet NaN z excepted.
constexpr Unrounded fused_multiply_add(const Value& x, const Value& y, const Value& z, bool toward_minus = false) {
  const Unrounded product = multiply(x, y);
  return add(product, exactly(z), toward_minus);
}

/// x / y. Division of a finite number by zero is an infinity.
constexpr Unrounded divide(const Value& x, const Value& y) {
  const bool negative = x.negative != y.negative;
  if (x.kind == Kind::nan || y.kind == Kind::nan) return unrounded_nan(exactly(x), exactly(y));
  if (x.kind == y.kind && (x.kind == Kind::infinity || x.kind == Kind::zero)) return invalid_operation();
  if (x.kind == Kind::infinity || y.kind == Kind::zero) return exactly(infinity_value(negative));
  if (x.kind == Kind::zero || y.kind == Kind::infinity) return exactly(zero_value(negative));
  const Unrounded dividend = normalised(exactly(x));  // 127 bits over at most 64: a quotient of at least 63 bits
  const uint128 quotient = dividend.significand / y.significand;
  const bool rest = dividend.significand % y.significand != 0;
  return {Kind::finite, negative, dividend.exponent - y.exponent, quotient, rest};
}

/// The largest integer whose square does not exceed x.
constexpr std::uint64_t integer_square_root(uint128 x) {
  std::uint64_t root = 0;
  for (int bit = 63; bit >= 0; --bit) {
    const std::uint64_t candidate = root | (std::uint64_t{1} << bit);
    if (uint128{candidate} * candidate <= x) root = candidate;
  }
  return root;
}

/// The square root; of -0 it is -0, of anything else below zero NaN.
constexpr Unrounded square_root(const Value& x) {
  if (x.kind == Kind::nan) return unrounded_nan(exactly(x), exactly(x));
  if (x.kind == Kind::zero) return exactly(x);
  if (x.negative) return invalid_operation();
  if (x.kind == Kind::infinity) return exactly(x);
  Unrounded radicand = normalised(exactly(x));
  if (radicand.exponent % 2 != 0) {
    radicand.significand <<= 1;
    radicand.exponent -= 1;
  }
  const std::uint64_t root = integer_square_root(radicand.significand);
  const bool rest = uint128{root} * root != radicand.significand;
  return {Kind::finite, false, radicand.exponent / 2, root, rest};
}

}  // namespace guardbit::formats
