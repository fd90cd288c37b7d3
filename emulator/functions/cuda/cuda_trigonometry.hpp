#pragma once

#include "emulator/functions/cuda/polynomial.hpp"
#include "emulator/functions/cuda/quarter_turns.hpp"
#include "emulator/functions/unit/quotients.hpp"
#include "emulator/functions/unit/special_function_forms.hpp"
#include "formats/rounding.hpp"

// CUDA's trigonometric functions and their inverses.
namespace guardbit::emulator::cuda_math {

/// The sine of an angle, by the cosine's polynomial in odd quarters.
template <class Number>
constexpr Number sine_of(const Angle<Number>& angle) {
  constexpr float cosine[4] = {0x1.9758p-16F, -0x1.6c0fdap-10F, 0x1.555576p-5F, -0x1.fffffep-2F};
  constexpr float sine[4] = {0.0F, -0x1.9a82a6p-13F, 0x1.110bc8p-7F, -0x1.55555p-3F};
  const auto is_odd = (angle.quarter & 1) != 0;
  const Number z = angle.r * angle.r;
  const Number p = polynomial(z, is_odd, cosine, sine);
  const Number factor = select(is_odd, 1, angle.r);
  const Number v = fma(p, fma(z, factor, 0), factor);
  return select((angle.quarter & 2) != 0, fma(v, -1, 0), v);
}

template <class Number>
constexpr Number sinf(Number x) {
  return sine_of(angle_of(x));
}
template <class Number>
constexpr Number cosf(Number x) {
  const Angle<Number> angle = angle_of(x);
  return sine_of(Angle<Number>{angle.quarter + 1, angle.r});
}
template <class Number>
constexpr Number tanf(Number x) {
  const Angle<Number> angle = angle_of(x);
  const Number r = angle.r, z = r * r;
  const Number p =
      polynomial(z, {0x1.32p-7F, 0x1.acp-9F, 0x1.8ep-6F, 0x1.b6p-5F, 0x1.11287p-3F, 0x1.55551p-2F});
  const Number t = select(abs(r) == 0x1.016878p-11F, r, fma(p, z * r, r));
  return select((angle.quarter & 1) != 0, mufu::rcp_approx_ftz(-t), t);
}

/// The sine of pi r + quarter pi / 2.
template <class Number>
constexpr Number sine_of_pi(const Angle<Number>& angle) {
  const Number r = angle.r, z = r * r;
  const Number p = polynomial(z, {-0x1.2f5992p-1F, 0x1.466b2p+1F, -0x1.4abbecp+2F});
  const Number sine = fma(Number(0x1.921fb6p+1F), r, fma(p, fma(z, r, 0), 0));
  const Number cosine =
      polynomial(z, {0x1.d09c24p-3F, -0x1.55a5cp+0F, 0x1.03c19ep+2F, -0x1.3bd3ccp+2F, 1.0F});
  const Number v = select((angle.quarter & 1) != 0, cosine, sine);
  return select((angle.quarter & 2) != 0, 0 - v, v);
}
/// x in halves: the nearest, and what is left.
template <class Number>
constexpr Angle<Number> halves_of(Number x) {
  const Number halves = rint(x + x);
  return {integer(halves), fma(-halves, 0.5F, x)};
}

template <class Number>
constexpr Number sinpif(Number x) {
  return select(trunc(x) == x, x * 0, sine_of_pi(halves_of(x)));
}
template <class Number>
constexpr Number cospif(Number x) {
  const Angle<Number> angle = halves_of(select(abs(x) > 0x1p24F, x * 0, x));
  return sine_of_pi(Angle<Number>{angle.quarter + 1, angle.r});
}

/// pi / 2 as a product of two numbers, which a fused step adds exactly.
inline constexpr float half_pi_factor = 0x1.ddcb02p-1F, other_half_pi_factor = 0x1.aee9d6p+0F;
/// The largest |x| whose inverse sine is a polynomial of x itself.
inline constexpr float largest_direct = 0x1.1eb852p-1F;

/// sqrt((1 - |x|) / 2) by one Newton step.
template <class Number>
constexpr Number half_complement_root(Number magnitude) {
  const Number h = fma(Number(0.5F), -magnitude, 0.5F);
  const Number i = mufu::rsqrt_approx_ftz(h);
  const Number s = h * i;
  return select(magnitude == 1, 0, fma(s, fma(-s, i * 0.5F, 0.5F), s));
}

template <class Number>
constexpr Number asinf(Number x) {
  const Number a = abs(x);
  const auto is_large = a > largest_direct;
  const Number v = select(is_large, half_complement_root(a), a), z = v * v;
  const Number p = polynomial(
      z, {0x1.9ba5eep-5F, 0x1.33952ep-6F, 0x1.7f21dp-5F, 0x1.32799ep-4F, 0x1.555808p-3F});
  const Number r = fma(z * p, v, v);
  return copysign(select(is_large, fma(Number(half_pi_factor), other_half_pi_factor, r * -2), r),
                  x);
}

template <class Number>
constexpr Number acosf(Number x) {
  const Number a = abs(x);
  const auto is_large = a > largest_direct;
  const Number v = copysign(select(is_large, half_complement_root(a), a), x), z = v * v;
  const Number p = polynomial(z, {0x1.21d9dep-5F, 0x1.163576p-6F, 0x1.f80518p-6F, 0x1.6e4272p-5F,
                                  0x1.3327b6p-4F, 0x1.55558cp-3F});
  const Number r = fma(z * p, v, v);
  Number w = fma(Number(half_pi_factor), other_half_pi_factor, select(is_large, r, -r));
  w = select(x > largest_direct, r, w);
  return select(is_large, w + w, w);
}

template <class Number>
constexpr Number atanf(Number x) {
  const Number a = abs(x);
  const auto is_large = a > 1;
  const Number v = select(is_large, mufu::rcp_approx_ftz(a), a), z = v * v;
  const Number p = polynomial(z, {0x1.412154p-9F, -0x1.d7c29ep-7F, 0x1.4672fcp-5F, -0x1.2914f4p-4F,
                                  0x1.aed642p-4F, -0x1.223d1p-3F, 0x1.995ecp-3F, -0x1.55544ep-2F});
  const Number r = fma(z * p, v, v);
  return copysign(select(is_large, fma(Number(half_pi_factor), other_half_pi_factor, -r), r), x);
}

template <class Number>
constexpr Number atan2f(Number y, Number x) {
  const Number a = abs(x), b = abs(y);
  const auto is_steep = b > a;
  const Number large = select(is_steep, b, a), small = select(is_steep, a, b);
  const Number t = divide(small, large, formats::Rounding::nearest_even), z = t * t;
  const Number p = polynomial(z, {0x1.66e216p-9F, -0x1.00ee9p-6F, 0x1.59b564p-5F, -0x1.325a2p-4F,
                                  0x1.b3d4d8p-4F, -0x1.22f962p-3F, 0x1.9979cp-3F, -0x1.5554fap-2F});
  const Number r = fma(z * p, t, t);
  const auto is_left = bits(x) >= mufu::sign_bit;
  const Number steep = fma(Number(half_pi_factor), other_half_pi_factor, select(is_left, r, -r));
  const Number flat = select(is_left, fma(Number(2 * half_pi_factor), other_half_pi_factor, -r), r);
  Number angle = select(is_steep, steep, flat);
  angle = select(a == b, select(is_left, Number(0x1.2d97c8p+1F), 0x1.921fb6p-1F), angle);
  angle = select(large == 0, select(is_left, Number(0x1.921fb6p+1F), 0), angle);
  const Number sum = a + b;
  return select(sum == sum, copysign(angle, y), sum);
}

/// sin(x) / cos(x), both the special function unit's.
template <class Number>
constexpr Number intrinsic_tanf(Number x) {
  return mufu::div_approx(mufu::sin_approx(x), mufu::cos_approx(x));
}

}  // namespace guardbit::emulator::cuda_math
