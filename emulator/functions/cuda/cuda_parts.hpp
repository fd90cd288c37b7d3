#pragma once

#include <utility>

#include "emulator/functions/numbers/masks.hpp"
#include "emulator/functions/numbers/subnormals.hpp"
#include "emulator/functions/unit/special_function_unit.hpp"

// CUDA's functions that take numbers apart, compare them or round them to integers.
namespace guardbit::emulator::cuda_math {

// ---- To integers ----

template <class Number>
constexpr Number floorf(Number x) {
  const Number whole = trunc(x);
  return select(whole > x, whole - 1, whole);
}
template <class Number>
constexpr Number ceilf(Number x) {
  const Number whole = trunc(x);
  // -0 of a negative number
  return select(whole < x, whole + 1, whole);
}
/// Ties away from zero.
template <class Number>
constexpr Number roundf(Number x) {
  return trunc(add_toward_zero(x, copysign(Number(0.5F), x)));
}
/// The fraction, and the integer that it was cut from.
template <class Number>
constexpr std::pair<Number, Number> modff(Number x) {
  const Number whole = trunc(x);
  return {select(whole == x, copysign(Number(0), x), x - whole), whole};
}

// ---- Comparisons ----

/// The larger one, of which +0 is larger than -0; of a NaN and a number the number.
template <class Number>
constexpr Number fmaxf(Number x, Number y) {
  const Number larger =
      select(x == y, Number::of(bits(taken(x)) & bits(taken(y))), select(x > y, x, y));
  return taken(select(x == x, select(y == y, larger, x), y));
}
template <class Number>
constexpr Number fminf(Number x, Number y) {
  const Number smaller =
      select(x == y, Number::of(bits(taken(x)) | bits(taken(y))), select(x < y, x, y));
  return taken(select(x == x, select(y == y, smaller, x), y));
}
/// x - y, if that is positive, else 0.
template <class Number>
constexpr Number fdimf(Number x, Number y) {
  return select(x <= y, 0, x - y);
}
/// Into [0, 1]; 0 of a NaN.
template <class Number>
constexpr Number saturatef(Number x) {
  return taken(select(x > 0, select(x < 1, x, 1), 0));
}

// ---- Exponents ----

/// x scaled into the normal range, and the exponent that was taken out.
template <class Number>
struct NormalPart {
  Number number, exponent;
};
template <class Number>
constexpr NormalPart<Number> normal_part(Number x) {
  const auto is_subnormal = abs(x) < 0x1p-126F;
  return {select(is_subnormal, x * 0x1p24F, x), select(is_subnormal, Number(-24), Number(0))};
}

/// The exponent of 2, so that |x| is at least that power. Of 0 it is -infinity.
template <class Number>
constexpr Number logbf(Number x) {
  const NormalPart<Number> n = normal_part(x);
  const Number exponent = n.exponent + (Number::of_integer(bits(abs(n.number)) >> 23) - 127);
  const Number finite = select(x == 0, -Number::of(mufu::infinity_code), exponent);
  return select(bits(abs(x)) >= mufu::infinity_code, x * x, finite);
}
/// The same as an integer: the least one of 0 and NaN, the largest one of infinity.
template <class Number>
constexpr typename Number::Word ilogbf(Number x) {
  const Number exponent = logbf(x);
  return integer(select(exponent == exponent, exponent, -Number::of(mufu::infinity_code)));
}

/// A significand from 1/2 to 1, and the exponent; of 0, infinity and NaN the number and 0.
template <class Number>
constexpr std::pair<Number, typename Number::Word> frexpf(Number x) {
  const NormalPart<Number> n = normal_part(x);
  const auto is_special = either(x == 0, bits(abs(n.number)) >= mufu::infinity_code);
  const Number significand = Number::of((bits(n.number) & 0x807fffff) | 0x3f000000);
  const Number exponent = n.exponent + (Number::of_integer(bits(abs(n.number)) >> 23) - 126);
  return {select(is_special, x + x, significand), integer(select(is_special, 0, exponent))};
}

/// x 2^n as products with powers of 2 in the normal range.
template <class Number>
constexpr Number ldexpf(Number x, typename Number::Word n) {
  const Number wanted = Number::of_integer(n);
  const Number exponent = select(wanted > 278, 278, select(wanted < -278, -278, wanted));
  // (exponent + 508) / 4 for each of three factors, the rest for the first
  const auto is_direct = abs(exponent) < 101;
  const Number quarter = select(is_direct, 127, trunc((exponent + 508) * 0.25F));
  const Number first = select(is_direct, exponent + 127, exponent + 508 - quarter * 3);
  const Number factor = Number::of(integer(quarter) << 23);
  return ((x * Number::of(integer(first) << 23)) * factor) * factor * factor;
}

/// The neighbour of x on the way to y.
template <class Number>
constexpr Number nextafterf(Number x, Number y) {
  const Number a = taken(x), b = taken(y);
  const float least = flushes_subnormals<Number>() ? 0x1p-126F : 0x1p-149F;
  const auto grows = (a < b), is_positive = a > 0;
  const Number further = Number::of(bits(a) + 1), nearer = taken(Number::of(bits(a) - 1));
  const Number toward =
      select(either(both(grows, is_positive), both(!grows, !is_positive)), further, nearer);
  const Number neighbour = select(a == 0, copysign(Number(least), b), toward);
  return select(either(!(x == x), !(y == y)), x + y, select(a == b, b, neighbour));
}

}  // namespace guardbit::emulator::cuda_math
