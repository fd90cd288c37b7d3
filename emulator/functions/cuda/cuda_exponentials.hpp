#pragma once

#include "emulator/functions/cuda/polynomial.hpp"
#include "emulator/functions/unit/special_function_forms.hpp"

// CUDA's exponential functions.
namespace guardbit::emulator::cuda_math {

/// 2^n of an integer n in -126 to 127, from the number 2^23 * 1.5 + n + 127.
template <class Number>
constexpr Number power_of_shifted(Number shifted) {
  return Number::of(bits(shifted) << 23);
}

/// b^x = 2^n 2^t: n is an integer near x log2(b) that normal numbers have, and t the rest.
/// `scale` is log2(b) / 252; `high` and `low` add up to log2(b).
template <class Number>
constexpr Number power_of_base(Number x, float scale, float high, float low) {
  const Number place = fma(x, scale, 0.5F);
  const Number share = select(place > 0, select(place < 1, place, 1), 0);
  const Number shifted = fma_down(share, 252, 0x1.800002p+23F);
  const Number n = shifted - 0x1.8000fep+23F;
  const Number t = fma(x, low, fma(x, high, -n));
  return mufu::ex2_approx_ftz(t) * power_of_shifted(shifted);
}

template <class Number>
constexpr Number expf(Number x) {
  return power_of_base(x, 0x1.77313ap-8F, 0x1.715476p+0F, 0x1.4ae0cp-26F);
}
template <class Number>
constexpr Number exp10f(Number x) {
  return power_of_base(x, 0x1.aff4c4p-7F, 0x1.a934fp+1F, 0x1.2f346ep-24F);
}
template <class Number>
constexpr Number exp2f(Number x) {
  return mufu::ex2_approx(x);
}

/// 2^k (e^r) - 1 by a polynomial, with x = k log(2) + r. 2^128 is taken in two steps.
template <class Number>
constexpr Number expm1f(Number x) {
  const Number k = select(abs(x) < 0x1.a3d70ap-2F, 0, rint(x * 0x1.715476p+0F));
  const Number r = fma(-k, 0x1.7f7d1cp-20F, fma(-k, 0x1.62e4p-1F, x));
  const auto is_last = k == 128;
  const Number n = select(is_last, k - 1, k);
  const Number p = polynomial(
      r, {0x1.6bd7ccp-10F, 0x1.12acc6p-7F, 0x1.5557c6p-5F, 0x1.5553ecp-3F, 0x1.fffffcp-2F});
  const Number q = fma(r * p, r, r);
  const Number power = mufu::ex2_approx(n);
  Number result = fma(q, power, power - 1);
  result = select(is_last, result + result, result);
  result = select(n > 128, Number::of(mufu::infinity_code), result);
  result = select(n < -25, -1, result);
  return select(x == 0, x + x, result);
}

// Intrinsics: the special function unit and one product.
template <class Number>
constexpr Number intrinsic_expf(Number x) {
  return mufu::ex2_approx(x * 0x1.715476p+0F);
}

template <class Number>
constexpr Number intrinsic_exp10f(Number x) {
  return mufu::ex2_approx(x * 0x1.a934fp+1F);
}

/// 2^n (e^r) / 4 of a |x| < 88, and infinity above, with x = n log(2) + r.
template <class Number>
constexpr Number quarter_exp(Number magnitude) {
  const Number whole = trunc(magnitude * 0x1.715476p+0F);
  const Number n = select(whole > 126, 126, whole);
  const Number r = fma(n, 0x1.05c61p-29F, fma(n, -0x1.62e43p-1F, magnitude));
  return mufu::ex2_approx_ftz(r * 0x1.715476p+0F) * power_of_shifted(n + 0x1.8000fap+23F);
}

}  // namespace guardbit::emulator::cuda_math
