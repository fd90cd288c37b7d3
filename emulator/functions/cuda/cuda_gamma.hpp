#pragma once

#include "emulator/functions/cuda/cuda_logarithms.hpp"
#include "emulator/functions/cuda/cuda_trigonometry.hpp"
#include "emulator/functions/cuda/polynomial.hpp"
#include "emulator/functions/unit/special_function_forms.hpp"

// CUDA's gamma functions.
namespace guardbit::emulator::cuda_math {

/// log(gamma(a)) of a >= 7.8 by Stirling's series.
template <class Number>
constexpr Number lgammaf_of_large(Number a) {
  const Number i = mufu::rcp_approx_ftz(a), z = i * i;
  const Number half_log = logf_of_nonzero(a) * 0.5F, w = half_log * (a - 0.5F);
  const Number series = polynomial(z, {0x1.97ceaap-11F, -0x1.6c12a6p-9F, 0x1.555546p-4F});
  const Number v = (w - a) + (w + fma(series, i, 0x1.d67f1cp-1F));
  const Number infinity = Number::of(mufu::infinity_code);
  return select(a == infinity, infinity, v);
}
/// of 3 to 7.8: a rational function
template <class Number>
constexpr Number lgammaf_from_3(Number a) {
  const Number t = a - 3;
  const Number n = polynomial(
      t, {-0x1.7671f6p+9F, -0x1.81edfp+13F, -0x1.40cacp+15F, -0x1.796d54p+15F, -0x1.175cb4p+17F});
  Number d = t + -0x1.03404p+8F;
  for (const float c : {-0x1.50c97p+13F, -0x1.6a0d0cp+16F, -0x1.9308cap+17F}) d = fma(d, t, c);
  return fma(n, mufu::rcp_approx_ftz(d), t);
}
/// of 1.5 to 3
template <class Number>
constexpr Number lgammaf_from_one_and_a_half(Number a) {
  const Number t = a - 2;
  return t * polynomial(t, {0x1.a00ff4p-15F, -0x1.cf4004p-13F, 0x1.1bcdf8p-11F, -0x1.3bc1c4p-10F,
                            0x1.7a0b6ep-9F, -0x1.e3d62p-8F, 0x1.51345p-6F, -0x1.13e034p-4F,
                            0x1.4a34ccp-2F, 0x1.b0ee6p-2F});
}
/// of 0.7 to 1.5
template <class Number>
constexpr Number lgammaf_near_1(Number a) {
  const Number t = 1 - a;
  return t * polynomial(t, {0x1.77deecp-5F, 0x1.a8eaeep-4F, 0x1.f700f2p-4F, 0x1.052b6ap-3F,
                            0x1.254ecap-3F, 0x1.5ad0cep-3F, 0x1.a8c57ep-3F, 0x1.1514e4p-2F,
                            0x1.9a4d48p-2F, 0x1.a51a64p-1F, 0x1.2788dp-1F});
}
/// of less: minus the logarithm of a polynomial
template <class Number>
constexpr Number lgammaf_near_0(Number a) {
  const Number p = polynomial(a, {0x1.d6390cp-9F, -0x1.6690fp-8F, -0x1.6d95dep-5F, 0x1.56aaaap-3F,
                                  -0x1.592d8ep-5F, -0x1.4fcdd6p-1F, 0x1.2788c6p-1F});
  return -logf(fma(a * p, a, a));
}

template <class Number>
constexpr Number lgammaf_of_magnitude(Number a) {
  const auto up_to = [&] {
    const auto near_0 = [&] { return lgammaf_near_0(a); };
    const auto near_1 = [&] { return lgammaf_near_1(a); };
    return Number::choose(a >= 0x1.666666p-1F, near_1, near_0);
  };
  const auto middle = [&] {
    const auto from = [&] { return lgammaf_from_one_and_a_half(a); };
    return Number::choose(a >= 1.5F, from, up_to);
  };
  const auto rational = [&] {
    const auto from = [&] { return lgammaf_from_3(a); };
    return Number::choose(a >= 3, from, middle);
  };
  const auto large = [&] { return lgammaf_of_large(a); };
  return Number::choose(a >= 0x1.f33334p+2F, large, rational);
}

/// log(|gamma(x)|); of a negative number by reflection: log(pi / |x sin(pi x)|) less that of |x|.
template <class Number>
constexpr Number lgammaf(Number x) {
  const Number a = abs(x);
  const Number v = lgammaf_of_magnitude(a);
  const Number infinity = Number::of(mufu::infinity_code);
  const auto reflected = [&] {
    const Number k = rint(a + a);
    const Angle<Number> angle{integer(k), fma(-k, 0.5F, a) * 0x1.921fb6p+1F};
    const Number log = logf(a * abs(sine_of(angle)));
    const Number result = fma(0x1.250d04p+0F - log, 1, -v);
    const Number near_0 = select(a < 0x1.d83c94p-64F, -logf_of_nonzero(a), result);
    return select(trunc(a) == a, infinity, near_0);
  };
  return Number::choose(x < 0, reflected, [&] { return v; });
}

}  // namespace guardbit::emulator::cuda_math
