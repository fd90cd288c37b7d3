#pragma once

#include "emulator/functions/cuda/cuda_exponentials.hpp"
#include "emulator/functions/cuda/polynomial.hpp"
#include "emulator/functions/numbers/masks.hpp"
#include "emulator/functions/unit/quotients.hpp"
#include "emulator/functions/unit/special_function_forms.hpp"

// CUDA's error functions and the normal distribution.
namespace guardbit::emulator::cuda_math {

/// Coefficients of erff's exponent for large arguments: from CUDA 12.1 on, and of CUDA 12.0, as the
/// library has them that Triton 3.6 links. Everything else is the same.
using ErffTail = float[7];
inline constexpr ErffTail erff_tail_13 = {0x1.d69874p-14F, -0x1.5c00b6p-10F, 0x1.13233ep-7F,
                                          -0x1.49b334p-5F, 0x1.46aa32p-3F,   0x1.d369f2p-1F,
                                          0x1.421428p-1F};
inline constexpr ErffTail erff_tail_12 = {0x1.139478p-16F, -0x1.eac172p-12F, 0x1.590816p-8F,
                                          -0x1.1902c4p-5F, 0x1.39f20cp-3F,   0x1.d526fcp-1F,
                                          0x1.41b084p-1F};

/// A polynomial near 0, else 1 - 2^p with a polynomial p.
template <class Number>
constexpr Number erff(Number x, const ErffTail& tail = erff_tail_13) {
  constexpr float near_0[7] = {0x1.63d2d4p-14F, -0x1.ae9a4p-11F, 0x1.55abd4p-8F, -0x1.b837cep-6F,
                               0x1.ce315ep-4F,  -0x1.812758p-2F, 0x1.06eba6p-3F};
  const Number a = abs(x);
  const auto is_large = a >= 0x1.00c1fcp+0F;
  const Number p = polynomial(select(is_large, a, x * x), is_large, tail, near_0);
  const Number g = select(is_large, -a, x);
  const Number sum = fma(p, g, g);
  return Number::choose(
      is_large, [&] { return copysign(1 - mufu::ex2_approx_ftz(sum), x); }, [&] { return sum; });
}

/// e^(a^2) erfc(a) of a >= 0: a rational function of (a - 4) / (a + 4).
template <class Number>
constexpr Number scaled_erfc(Number a) {
  const Number i = mufu::rcp_approx_ftz(a + 4);
  const Number q = (a - 4) * i;
  // a Newton step of the quotient
  const Number t = fma(i, fma(-q, a, fma(Number(-4), q + 1, a)), q);
  const Number p = polynomial(t, {0x1.d34122p-11F, 0x1.cdc0b6p-8F, -0x1.03f696p-6F, 0x1.2a6e76p-5F,
                                  -0x1.10f8b4p-4F, 0x1.8043aap-4F, -0x1.9da848p-4F, 0x1.16e9bcp-4F,
                                  0x1.f7e2ep-7F, -0x1.1df1a8p-3F, 0x1.3ba592p+0F});
  const Number j = mufu::rcp_approx_ftz(fma(Number(2), a, 1));
  const Number s = p * j;
  return fma(fma(a, s * -2, p) - s, j, s);
}
/// From there on erfcf is 0, and erfcxf an asymptotic series.
inline constexpr float largest_scaled_erfc = 0x1.41c29p+3F;

/// e^(-x^2) times that, with x^2 in two parts.
template <class Number>
constexpr Number erfcf(Number x) {
  const Number a = abs(x), w = scaled_erfc(a);
  // e^(-x^2) = 2^n 2^r
  const Number square = a * a;
  const Number whole = trunc(-square * 0x1.715476p+0F);
  const Number n = select(abs(whole) > 126, copysign(Number(126), whole), whole);
  const Number r = fma(n, 0x1.05c61p-29F, fma(n, -0x1.62e43p-1F, -square)) * 0x1.715476p+0F;
  const Number scale = Number::of(bits(n + 0x1.8000fep+23F) << 23);
  const Number power = mufu::ex2_approx_ftz(r) * scale;
  const Number v = w * fma(power, fma(-a, a, square), power);
  const Number tail = select(a > largest_scaled_erfc, 0, v);
  return select(x < 0, 2 - tail, tail);
}

/// erfc(-x / sqrt(2)) / 2; the argument in two parts.
template <class Number>
constexpr Number normcdff(Number x) {
  const Number y = select(abs(x) > 14.5F, copysign(Number(14.5F), x), x);
  const Number high = y * -0x1.6a09e6p-1F;
  const Number low = fma(y, -0x1.9fcef4p-27F, fma(y, -0x1.6a09e6p-1F, -high));
  const Number s = high + low;
  const Number v = erfcf(s);
  const Number corrected = fma((s * -2) * v, (high - s) + low, v);
  return select(y < -1, corrected, v) * 0.5F;
}

/// e^(x^2) erfc(x); of a negative x it is 2 e^(x^2) less that of -x.
template <class Number>
constexpr Number erfcxf(Number x) {
  const Number a = abs(x);
  const auto near = [&] { return scaled_erfc(a); };
  const auto far = [&] {
    const Number i = mufu::div_approx(Number(0.25F), a * 0.25F);
    const Number p = polynomial(i * i, {0x1.a4p+2F, -0x1.ep+0F, 0.75F, -0.5F, 1.0F});
    return (i * 0x1.20dd76p-1F) * p;
  };
  const Number w = Number::choose(a < largest_scaled_erfc, near, far);
  const auto reflected = [&] {
    const Number square = multiply_toward_zero(a, a);
    const Number power = expf(square), twice = power + power;
    return select(twice == Number::of(mufu::infinity_code), twice,
                  fma(twice, fma(a, a, -square), twice) - w);
  };
  return Number::choose(x < 0, reflected, [&] { return w; });
}

/// erfinv(x) / x as a polynomial of -log2(1 - x^2).
inline constexpr float inverse_erf_polynomial[10] = {
    -0x1.14c6ep-32F,  0x1.43ec8ap-27F,  -0x1.02dfb4p-23F, 0x1.d1f08cp-23F, 0x1.0e8554p-17F,
    -0x1.09b69ap-15F, -0x1.95fd42p-11F, 0x1.6b804ep-8F,   0x1.495c1ep-3F,  0x1.c5bf88p-1F};

/// x times a polynomial of log2(1 - x^2), or of its root near |x| = 1.
template <class Number>
constexpr Number erfinvf(Number x) {
  const Number l = mufu::lg2_approx_ftz(fma(x, -x, 1));
  const Number t = -l;
  const auto near_1 = [&] {
    const Number r = mufu::rsqrt_approx_ftz(t);
    const Number p = polynomial(r, {-0x1.2e0942p-1F, -0x1.53754ap-1F, 0x1.98d5b8p+0F,
                                    -0x1.59b5dap-1F, -0x1.860a6ep-4F, 0x1.abb372p-1F});
    const Number w = select(t == Number::of(mufu::infinity_code), t, (r * t) * p);
    return copysign(w, x);
  };
  const auto near_0 = [&] { return x * polynomial(t, inverse_erf_polynomial); };
  return Number::choose(l < -0x1.066666p+3F, near_1, near_0);
}

/// The inverse of 1 - erf: near 1 by erfinvf's polynomial, else by one of 1 / sqrt(-log2(x)).
template <class Number>
constexpr Number erfcinvf(Number x) {
  const Number t = 2 - x;
  const auto middle = [&] {
    const Number p = polynomial(-mufu::lg2_approx_ftz(t * x), inverse_erf_polynomial);
    return fma(p, -x, p);
  };
  const auto ends = [&] {
    const auto is_upper = x > 1;
    const Number l = -mufu::lg2_approx(select(is_upper, t, x));
    const Number r = mufu::rsqrt_approx_ftz(l);
    const Number p = polynomial(
        r, {-0x1.f8e7e2p+5F, 0x1.fdf052p+6F, -0x1.c86c38p+6F, 0x1.e29b36p+5F, -0x1.5ca366p+4F,
            0x1.9dea08p+2F, -0x1.d53c0ap+0F, -0x1.f0e3e8p-6F, 0x1.aa6eeap-1F});
    const Number root = select(l == Number::of(mufu::infinity_code), l, r * l);
    return p * select(is_upper, -root, root);
  };
  return Number::choose(both(x >= 0x1.bda512p-9F, x <= 0x1.ff212ep+0F), middle, ends);
}

template <class Number>
constexpr Number normcdfinvf(Number x) {
  return fma(Number(-0x1.6a09e6p+0F), erfcinvf(x + x), 0);
}

}  // namespace guardbit::emulator::cuda_math
