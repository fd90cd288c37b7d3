#pragma once

#include "emulator/functions/cuda/cuda_logarithms.hpp"
#include "emulator/functions/cuda/cuda_powers.hpp"
#include "emulator/functions/cuda/cuda_trigonometry.hpp"
#include "emulator/functions/cuda/polynomial.hpp"
#include "emulator/functions/numbers/masks.hpp"
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

/// Above this |x| tgammaf takes this one.
inline constexpr float largest_gamma_argument = 0x1.48ccccp+5F;

/// sqrt(2 pi) a^(a - 1/2) e^(-a), or of a negative x its reciprocal, times 2^48 where a > 33.
template <class Number>
constexpr Number stirling_factor(Number a, typename Number::Mask is_reciprocal) {
  const Pair<Number> w = product(log2_of(a, false), a - 0.5F);
  const Number m = a * 0x1.715476p+0F;
  const Number m_low = fma(Number(0x1.4ae0cp-26F), a, fma(Number(0x1.715476p+0F), a, -m));
  // w - m in two parts
  const Number d = w.high - m;
  const Number of_m = d - (d + m), of_w = w.high - (d + m);
  const Number d_low = (w.low - m_low) + (of_w + (-m - of_m));
  const Number shift = select(a > 33, Number(48), -0.0F);
  const Pair<Number> exponent = {select(is_reciprocal, shift - d, d),
                                 select(is_reciprocal, -d_low, d_low)};
  return exp2_of(exponent) * 0x1.40d932p+1F;
}

/// of |x| >= 1.5
template <class Number>
constexpr Number tgammaf_of_large(Number x) {
  const Number y = select(abs(x) > largest_gamma_argument, largest_gamma_argument, x);
  const Number a = abs(y);
  const auto is_negative = x < 0;
  const Number factor = stirling_factor(a, is_negative);
  const Number i = mufu::rcp_approx_ftz(a);
  const Number series =
      i * polynomial(i, {0x1.1ef2e2p-14F, -0x1.a87dbp-15F, -0x1.bb4d7cp-12F, 0x1.04157cp-10F,
                         -0x1.2415fap-12F, -0x1.5e9ac8p-9F, 0x1.c70e64p-9F, 0x1.555558p-4F});
  const auto reflected = [&] {
    // pi / (x sin(pi x) gamma(|x|))
    const Number s = sine_of_pi(halves_of(a));
    const Number v = fma(series, y, y);
    const Number product = v * s, product_low = fma(v, s, -product);
    const Number q = mufu::div_approx(Number(1), product);
    const Number result = fma(factor, q, -(factor * (product_low * (q * q)))) * 0.5F;
    return select(a > 33, result * 0x1p-48F, result);
  };
  return Number::choose(is_negative, reflected, [&] { return fma(series, factor, factor); });
}
/// of less: the reciprocal of a polynomial of x less the nearest integer
template <class Number>
constexpr Number tgammaf_of_small(Number x) {
  const Number t = select(x == 0, x, x - rint(x));
  const Number outer = select(x < -0.5F, x, 1);
  const Number s = select(x <= 0.5F, outer * t, outer);
  const Number p = polynomial(t, {-0x1.193eccp-10F, 0x1.d207aep-8F, -0x1.3c016p-7F, -0x1.598a44p-5F,
                                  0x1.551366p-3F, -0x1.58180ap-5F, -0x1.4fcf44p-1F, 0x1.2788dp-1F});
  return mufu::div_approx(Number(1), fma(fma(p, s, 0), t, s));
}

template <class Number>
constexpr Number tgammaf(Number x) {
  const Number v = Number::choose(
      abs(x) >= 1.5F, [&] { return tgammaf_of_large(x); }, [&] { return tgammaf_of_small(x); });
  const Number whole = trunc(x);
  const auto vanishes = both(x < -largest_gamma_argument, (integer(whole) & 1) != 0);
  const Number of_negative = select(whole == x, Number::of(mufu::nan_code), select(vanishes, 0, v));
  return select(x < 0, of_negative, v);
}

}  // namespace guardbit::emulator::cuda_math
