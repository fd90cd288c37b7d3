#pragma once

#include <cstdint>

#include "emulator/functions/cuda/cuda_bessel.hpp"
#include "emulator/functions/unit/special_function_unit.hpp"

// CUDA's Bessel functions of any integer order, by recurrence from those of order 0 and 1. They
// take as many steps as the order says.
namespace guardbit::emulator::cuda_math {

/// J_n / (J_0 + 2 J_2 + 2 J_4 + ...) by the recurrence downward from 1 and 0 at an even order above
/// n (Miller).
template <class Number>
constexpr Number jnf_downward(std::int32_t n, Number x) {
  const auto whole = [](std::int32_t k) {
    return Number::of_integer(static_cast<std::uint32_t>(k));
  };
  const auto reach = static_cast<std::uint32_t>(n) * 40;
  const auto above = static_cast<std::int32_t>(integer(square_root(Number::of_integer(reach))));
  Number current = 1, previous = 0, wanted = 0, sum = 0;
  for (std::int32_t k = (n + above) & ~1; k > 0; --k) {
    Number next = fma(current, (whole(k) + whole(k)) / x, -previous);
    if (abs(next) > 0x1.c6bf52p+49F) {  // 10^15
      constexpr float down = 0x1.203afap-50F;
      next = next * down;
      current = current * down;
      wanted = wanted * down;
      sum = sum * down;
    }
    previous = current;
    current = next;
    if (k - 1 == n) wanted = current;
    if (k % 2 == 1) sum = fma(current, 2, sum);
  }
  return wanted / (sum - current);
}

template <class Number>
constexpr Number jnf(std::uint32_t order, Number x) {
  const auto n = static_cast<std::int32_t>(order);
  if (n == 0) return j0f(x);
  if (n == 1) return j1f(x);
  if (n < 0) return Number::of(mufu::nan_code);
  if (!(abs(x) > Number::of_integer(order + (n > 4 ? 1 : 0)))) return jnf_downward(n, x);
  const Number factor = Number(2) / x;
  Number previous = j0f(x), current = j1f(x);
  for (std::uint32_t k = 1; k < order; ++k) {
    const Number next = fma(current * Number::of_integer(k), factor, -previous);
    previous = current;
    current = next;
  }
  return current;
}

template <class Number>
constexpr Number ynf(std::uint32_t order, Number x) {
  const auto n = static_cast<std::int32_t>(order);
  if (n == 0) return y0f(x);
  if (n == 1) return y1f(x);
  if (n < 0 || !(x >= 0)) return Number::of(mufu::nan_code);
  if (abs(x) < 0x1p-126F) return Number(-0x1.dcd65p+29F) / abs(x);  // -10^9
  const Number factor = Number(2) / x;
  Number previous = y0f(x), current = y1f(x);
  for (std::uint32_t k = 1; k < order; ++k) {
    const Number next = fma(factor * Number::of_integer(k), current, -previous);
    previous = current;
    current = next;
  }
  return current == current ? current : -Number::of(mufu::infinity_code);
}

}  // namespace guardbit::emulator::cuda_math
