#pragma once

#include <utility>

#include "emulator/functions/numbers/masks.hpp"
#include "emulator/functions/unit/special_function_unit.hpp"

// CUDA's remainders. They are exact: the device divides significands, 23 bits at a time, which
// truncated_remainder takes as one step.
namespace guardbit::emulator::cuda_math {

template <class Number>
constexpr Number fmodf(Number x, Number y) {
  return copysign(truncated_remainder(abs(x), abs(y), 0), x);
}

/// What |x| / |y| leaves where the quotient is rounded to nearest even, and the quotient up to
/// multiples of 8, from 0 to 8.
template <class Number>
struct NearestRemainder {
  Number rest, quotient;
};
template <class Number>
constexpr NearestRemainder<Number> nearest_remainder(Number x, Number y) {
  const Number a = abs(x), b = abs(y);
  Number rest = truncated_remainder(a, b * 8, 0), quotient = 0;
  for (const float place : {4.0F, 2.0F, 1.0F}) {
    const auto has = rest >= b * place;
    rest = select(has, rest - b * place, rest);
    quotient = select(has, quotient + place, quotient);
  }
  const Number twice = truncated_remainder(a, b, 1);
  const auto is_odd = !(trunc(quotient * 0.5F) * 2 == quotient);
  const auto is_up = either(twice > b, both(twice == b, is_odd));
  // Below the normal range twice the difference is what steps with flushed numbers still have.
  const Number lower = select(rest < 0x1p-126F, fma(b, -2, twice) * 0.5F, rest - b);
  return {select(is_up, lower, rest), select(is_up, quotient + 1, quotient)};
}

template <class Number>
constexpr Number remainderf(Number x, Number y) {
  const Number rest = nearest_remainder(x, y).rest;
  return select(bits(x) >= mufu::sign_bit, -rest, rest);
}

/// The remainder, and the last three bits of the quotient with its sign.
template <class Number>
constexpr std::pair<Number, typename Number::Word> remquof(Number x, Number y) {
  const NearestRemainder<Number> r = nearest_remainder(x, y);
  const Number magnitude = select(r.quotient == 8, 0, r.quotient);
  const Number quotient = select((bits(x) ^ bits(y)) >= mufu::sign_bit, -magnitude, magnitude);
  return {select(bits(x) >= mufu::sign_bit, -r.rest, r.rest),
          integer(select(r.rest == r.rest, quotient, 0))};
}

}  // namespace guardbit::emulator::cuda_math
