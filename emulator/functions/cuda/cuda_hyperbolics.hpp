#pragma once

#include "emulator/functions/cuda/cuda_exponentials.hpp"
#include "emulator/functions/cuda/cuda_logarithms.hpp"

// CUDA's hyperbolic functions and their inverses.
namespace guardbit::emulator::cuda_math {

/// A polynomial near 0, else 1 - 2 / (e^(2|x|) + 1).
template <class Number>
constexpr Number tanhf(Number x) {
  const Number a = abs(x);
  const auto large = [&] {
    const Number power = mufu::ex2_approx_ftz(a * 0x1.715476p+1F);
    const Number quotient = fma(mufu::rcp_approx_ftz(power + 1), -2, 1);
    return copysign(select(a >= 0x1.205968p+3F, 1, quotient), x);
  };
  const auto small = [&] {
    const Number p =
        polynomial(x * x, {0x1.01e104p-6F, -0x1.ac795cp-5F, 0x1.10b282p-3F, -0x1.5553dap-2F, 0.0F});
    return fma(p, x, x);
  };
  return Number::choose(a >= 0x1.333334p-1F, large, small);
}

/// 2 (e + f / 8), with e = e^|x| / 4 and f its reciprocal, flushed.
template <class Number>
constexpr Number coshf(Number x) {
  const Number e = quarter_exp(abs(x));
  return fma(Number(2), e, flushed(mufu::rcp_approx_ftz(e) * 0.125F));
}

/// The same with the other sign, and a polynomial below 1.
template <class Number>
constexpr Number sinhf(Number x) {
  const Number a = abs(x);
  const auto large = [&] {
    const Number e = quarter_exp(a);
    return copysign(fma(Number(2), e, flushed(mufu::rcp_approx_ftz(e) * -0.125F)), x);
  };
  const auto small = [&] {
    const Number z = x * x;
    const Number p =
        polynomial(z, {0x1.7a15b4p-19F, 0x1.9ffe92p-13F, 0x1.111134p-7F, 0x1.555556p-3F});
    return fma(z * p, x, x);
  };
  return Number::choose(a >= 1, large, small);
}

inline constexpr float log_of_2 = 0x1.62e43p-1F;

/// log(1 + |x| + x^2 / (1 + sqrt(x^2 + 1))); of a |x| above 2^23 log(1 + |x|) + log(2).
template <class Number>
constexpr Number asinhf(Number x) {
  const Number a = abs(x);
  const auto is_large = a > 0x1p23F;
  const Number q = fma(x, x, 1);
  const Number d = mufu::rcp_approx_ftz(fma(q, mufu::rsqrt_approx_ftz(q), 1));
  const Number v = log1pf(select(is_large, a, fma(a, a * d, a)));
  return copysign(select(is_large, v + log_of_2, v), x);
}

/// log(1 + t + sqrt(x^2 - 1)) with t = x - 1; of a t above 2^23 log(t) + log(2). The root has one
/// Newton step.
template <class Number>
constexpr Number acoshf(Number x) {
  const Number t = x - 1;
  const auto is_large = bits(t) > 0x4b000000;  // or negative, or a NaN
  const Number q = fma(x, x, -1);
  const Number i = mufu::rsqrt_approx_ftz(q);
  const Number s = q * i;
  Number root = fma(fma(-s, s, q), i * 0.5F, s);
  root = select(is_large, -0x1.000002p+0F, select(q == 0, 0, root));
  const Number v = log1pf(t + root);
  return select(is_large, v + log_of_2, v);
}

/// log(1 + 2 |x| / (1 - |x|)) / 2.
template <class Number>
constexpr Number atanhf(Number x) {
  const Number a = abs(x);
  const Number i = mufu::rcp_approx_ftz(1 - a);
  const Number t = select(a > 0x1p126F, -2, a * (i + i));
  return copysign(Number(0.5F), x) * log1pf(t);
}

}  // namespace guardbit::emulator::cuda_math
