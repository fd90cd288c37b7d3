#pragma once

#include "emulator/functions/cuda/cuda_exponentials.hpp"
#include "emulator/functions/cuda/cuda_logarithms.hpp"
#include "emulator/functions/cuda/cuda_trigonometry.hpp"
#include "emulator/functions/cuda/polynomial.hpp"
#include "emulator/functions/numbers/masks.hpp"
#include "emulator/functions/unit/special_function_forms.hpp"

// CUDA's Bessel functions of the first and second kind, and the modified ones of the first. Near
// their first zeros they are polynomials of the distance from these, each zero a sum of two
// numbers; further out an amplitude times a cosine.
namespace guardbit::emulator::cuda_math {

/// x less a zero of the function.
template <class Number>
constexpr Number distance(Number x, float zero, float rest) {
  return (x - zero) - rest;
}

/// cos(angle + phase), with the sum reduced once more.
template <class Number>
constexpr Number cosine_of_shifted(Number angle, float phase) {
  const Angle<Number> a = angle_of(angle);
  const Number turned = a.r + fma(Number::of_integer(a.quarter & 3), 0x1.921fb6p+0F, Number(phase));
  const auto quarter = integer(rint(turned * 0x1.45f306p-1F));
  const Number k = Number::of_integer(quarter);
  return sine_of(
      Angle<Number>{quarter + 1, fma(k, -0x1.4442dp-24F, fma(k, -0x1.921fb4p+0F, turned))});
}

/// sqrt(2 / (pi a)) P(1 / a^2) cos(a + Q(1 / a^2) / a + phase); 0 of infinity.
template <class Number, std::size_t n, std::size_t m>
constexpr Number bessel_far(Number a, float phase, const float (&amplitude)[n],
                            const float (&angle)[m]) {
  const Number i = mufu::rcp_approx_ftz(a), z = i * i;
  const Number scale = polynomial(z, amplitude) * (mufu::rsqrt_approx(a) * 0x1.988454p-1F);
  const Number far = scale * cosine_of_shifted(fma(polynomial(z, angle), i, a), phase);
  return select(a == Number::of(mufu::infinity_code), 0, far);
}

/// Phases in radians: -pi/4, -3 pi/4, -5 pi/4.
inline constexpr float eighth_back = -0x1.921fb6p-1F, three_eighths_back = -0x1.2d97c8p+1F,
                       five_eighths_back = -0x1.f6a7a2p+1F;

template <class Number>
constexpr Number j0f(Number x) {
  const Number a = abs(x);
  const auto near = [&] {
    const Number t = distance(a, 0x1.33d152p+1F, 0x1.d2e366p-24F);
    const Number p = polynomial(
        t, {-0x1.6771cep-50F, -0x1.595366p-44F, 0x1.7e1c3p-39F, -0x1.a82f02p-38F, -0x1.d21e7p-32F,
            0x1.4060b6p-31F, 0x1.f2e286p-25F, 0x1.eedf0ap-30F, -0x1.6dbf8cp-18F, -0x1.eccb92p-18F,
            0x1.3c5bd6p-12F, 0x1.95c668p-11F, -0x1.dd5436p-8F, -0x1.b4ee8ep-6F});
    return distance(a, 0x1.14eb56p+3F, 0x1.999bdap-22F) *
           (distance(a, 0x1.6148f6p+2F, -0x1.34f46ep-24F) * (t * p));
  };
  const auto far = [&] {
    return bessel_far(a, eighth_back,
                      {0x1.adfd26p+1F, -0x1.076f84p-1F, 0x1.a767e6p-4F, -0x1.ffff6cp-5F, 1.0F},
                      {0x1.23c012p+0F, -0x1.a4825ap-3F, 0x1.0a9da2p-4F, -0x1.fffffep-4F});
  };
  return Number::choose(a <= 8, near, far);
}

template <class Number>
constexpr Number j1f(Number x) {
  const Number a = abs(x);
  const auto near = [&] {
    const Number t = distance(a, 0x1.ea7558p+1F, -0x1.4a121ep-24F);
    const Number p = polynomial(
        t, {0x1.5e68c6p-44F, 0x1.037e84p-40F, -0x1.c43d82p-36F, -0x1.bbbdfep-33F, 0x1.36193ap-28F,
            0x1.d022e6p-26F, -0x1.1f1b9p-21F, -0x1.3cca7ap-19F, 0x1.59b38ap-15F, 0x1.f3d62p-14F,
            -0x1.d9d738p-10F, -0x1.4edffap-9F, 0x1.0e7326p-5F});
    return a * (t * (distance(a, 0x1.c0ff6p+2F, -0x1.8971b6p-23F) * p));
  };
  const auto far = [&] {
    return bessel_far(a, three_eighths_back,
                      {-0x1.05966ep+2F, 0x1.7fefd2p-1F, -0x1.8b175cp-3F, 0x1.7fff16p-3F, 1.0F},
                      {-0x1.947744p+0F, 0x1.72295ap-2F, -0x1.4fe5d8p-3F, 0x1.7ffffap-2F});
  };
  const Number v = Number::choose(a <= 8, near, far);
  const Number signed_v = select(x < 0, -v, v);
  return select(a < 0x1.4484cp-100F, copysign(signed_v, x), signed_v);
}

/// 2 / pi
inline constexpr float two_over_pi = 0x1.45f306p-1F;

/// 2 / pi log(x) J0(x) + P(x^2) of a positive x near 0.
template <class Number>
constexpr Number y0f_near_0(Number x) {
  const Number log = with_log_of_zero(x, logf_of_nonzero(x) * two_over_pi);
  // One after the other: in which order a compiler evaluates arguments is its own affair.
  const Number p = polynomial(x * x, {0x1.b7cb58p-24F, -0x1.3e936cp-17F, 0x1.1a62p-11F,
                                      -0x1.075b1cp-6F, 0x1.6bbcb4p-3F, -0x1.2e4d6ap-4F});
  const Number j = j0f(x);
  return fma(log, j, p);
}

template <class Number>
constexpr Number y0f(Number x) {
  const Number a = abs(x);
  const auto far = [&] {
    return bessel_far(a, three_eighths_back,
                      {-0x1.98d3e6p-2F, 0x1.a1abep-4F, -0x1.fff0aap-5F, 1.0F},
                      {0x1.199ac2p+0F, -0x1.a1a638p-3F, 0x1.0a8f06p-4F, -0x1.fffff6p-4F});
  };
  const auto at_zero_3 = [&] {
    const Number t = distance(a, 0x1.c581dcp+2F, 0x1.39c84p-24F);
    return t * polynomial(t, {0x1.219d7cp-21F, 0x1.53b4d8p-19F, -0x1.80a98p-15F, -0x1.263156p-13F,
                              0x1.1d3242p-9F, 0x1.b2e9aap-9F, -0x1.8969aep-5F, -0x1.5aef32p-6F,
                              0x1.334ccap-2F});
  };
  const auto at_zero_2 = [&] {
    const Number t = distance(a, 0x1.fa9534p+1F, 0x1.b30ad4p-24F);
    return t * polynomial(t, {-0x1.93ba7ep-23F, -0x1.bc4c0ep-23F, -0x1.0ae0c8p-18F, 0x1.aa8c2p-15F,
                              0x1.959daep-13F, -0x1.1e3418p-9F, -0x1.c0fe5cp-8F, 0x1.df6d6ap-5F,
                              0x1.a09be2p-5F, -0x1.9c3426p-2F});
  };
  const auto at_zero_1 = [&] {
    const Number t = distance(a, 0x1.c982ecp-1F, -0x1.cafa06p-27F);
    return t * polynomial(t, {0x1.bb9166p-6F, -0x1.04ae98p-3F, 0x1.fe5992p-3F, -0x1.17e536p-2F,
                              0x1.b79d26p-3F, -0x1.7189fep-3F, 0x1.84ee9ap-3F, -0x1.a4b964p-3F,
                              0x1.c1e87ap-3F, -0x1.cf228ap-3F, 0x1.c3a494p-3F, -0x1.f7e35ap-2F,
                              0x1.c24376p-1F});
  };
  const auto from_zero_3 = [&] { return Number::choose(a <= 0x1.14ef3p+3F, at_zero_3, far); };
  const auto from_zero_2 = [&] {
    return Number::choose(a <= 0x1.61663cp+2F, at_zero_2, from_zero_3);
  };
  const auto from_zero_1 = [&] {
    return Number::choose(a <= 0x1.ecf5fp+0F, at_zero_1, from_zero_2);
  };
  const auto near_0 = [&] { return y0f_near_0(a); };
  const Number v = Number::choose(a <= 0x1.c982ecp-2F, near_0, from_zero_1);
  return select(x < 0, Number::of(mufu::nan_code), v);
}

/// 2 / pi (log(x) J1(x) - 1 / x) + x P(x^2) of a positive x near 0.
template <class Number>
constexpr Number y1f_near_0(Number x) {
  const Number p = polynomial(x * x, {0x1.28c598p-27F, -0x1.0a4fb4p-20F, 0x1.2c7d2ap-14F,
                                      -0x1.835b96p-9F, 0x1.bd3976p-5F, -0x1.918662p-3F});
  const Number quotient = Number(-1) / x, log = logf(x), j = j1f(x);
  return fma(p, x, fma(j, log, quotient) * two_over_pi);
}

template <class Number>
constexpr Number y1f(Number x) {
  const Number a = abs(x);
  const auto far = [&] {
    return bessel_far(a, five_eighths_back, {0x1.4cfecp-1F, -0x1.89572p-3F, 0x1.7ffd7ep-3F, 1.0F},
                      {-0x1.c9c356p+0F, 0x1.76e756p-2F, -0x1.4ff6dcp-3F, 0x1.7ffffep-2F});
  };
  const auto at_zero_3 = [&] {
    const Number t = distance(a, 0x1.13127ap+3F, 0x1.cc2d36p-22F);
    return t * polynomial(t, {0x1.19e706p-21F, 0x1.05205cp-19F, -0x1.6ebee2p-15F, -0x1.b3f55p-14F,
                              0x1.07a334p-9F, 0x1.3ce6dap-9F, -0x1.6395cap-5F, -0x1.02b36cp-6F,
                              0x1.15f994p-2F});
  };
  const auto at_zero_2 = [&] {
    const Number t = distance(a, 0x1.5b7fe4p+2F, 0x1.d0f606p-23F);
    return t * polynomial(t, {0x1.7cafap-26F, -0x1.11482cp-21F, -0x1.7f1428p-19F, 0x1.84fc04p-15F,
                              0x1.337638p-13F, -0x1.1be3fap-9F, -0x1.10a312p-8F, 0x1.a15d82p-5F,
                              0x1.00b9f8p-5F, -0x1.5c7c56p-2F});
  };
  const auto at_zero_1 = [&] {
    const Number t = distance(a, 0x1.193beep+1F, -0x1.6401b8p-24F);
    return t * polynomial(t, {-0x1.13c53ap-16F, 0x1.0c951p-13F, -0x1.e1561ap-12F, 0x1.1ec204p-10F,
                              -0x1.58e08ap-9F, 0x1.e6bbeep-8F, -0x1.3a12f8p-8F, -0x1.0d2d14p-5F,
                              -0x1.e56fbep-4F, 0x1.0aa484p-1F});
  };
  const auto from_zero_3 = [&] { return Number::choose(a <= 0x1.4585c6p+3F, at_zero_3, far); };
  const auto from_zero_2 = [&] {
    return Number::choose(a <= 0x1.c0d26ep+2F, at_zero_2, from_zero_3);
  };
  const auto from_zero_1 = [&] {
    return Number::choose(a <= 0x1.e81ddcp+1F, at_zero_1, from_zero_2);
  };
  const auto near_0 = [&] { return y1f_near_0(a); };
  const auto normal = [&] { return Number::choose(a <= 0x1.b2d588p+0F, near_0, from_zero_1); };
  const Number v = Number::choose(
      a < 0x1p-126F, [&] { return Number(-two_over_pi) / a; }, normal);
  return select(x < 0, Number::of(mufu::nan_code), v);
}

/// P(1 / a) / sqrt(a) e^a, with e^a = (e^(a/2))^2 - 1 + 1.
template <class Number>
constexpr Number modified_bessel_far(Number a, const float (&amplitude)[6]) {
  const Number i = mufu::rcp_approx_ftz(a);
  const Number scale = polynomial(i, amplitude) * mufu::rsqrt_approx_ftz(a);
  const Number e = expm1f(a * 0.5F);
  return (scale * e) * (e + 2) + scale;
}

template <class Number>
constexpr Number cyl_bessel_i0f(Number x) {
  const Number a = abs(x);
  const auto far = [&] {
    return modified_bessel_far(a, {0x1.65174cp-2F, -0x1.65961ap-8F, 0x1.112e0ep-5F, 0x1.c8efc4p-6F,
                                   0x1.988a4ap-5F, 0x1.988452p-2F});
  };
  const auto near = [&] {
    return polynomial(
        a * a, {0x1.6e5202p-63F, 0x1.0b56ecp-56F, 0x1.811024p-47F, 0x1.489db6p-39F, 0x1.041228p-31F,
                0x1.231ab4p-24F, 0x1.c72338p-18F, 0x1.c71becp-12F, 0x1.000004p-6F, 0.25F, 1.0F});
  };
  return Number::choose(both(a >= 9, a < Number::of(mufu::infinity_code)), far, near);
}

template <class Number>
constexpr Number cyl_bessel_i1f(Number x) {
  const Number a = abs(x);
  const auto far = [&] {
    return copysign(modified_bessel_far(a, {-0x1.0179a8p-1F, 0x1.d27a5cp-6F, -0x1.8f404ap-5F,
                                            -0x1.7c3d52p-5F, -0x1.326696p-3F, 0x1.988456p-2F}),
                    x);
  };
  const auto near = [&] {
    const Number z = a * a;
    const Number p = polynomial(
        z, {0x1.9af7bap-59F, 0x1.8a9582p-52F, 0x1.6e19p-43F, 0x1.23858ap-35F, 0x1.852d5cp-28F,
            0x1.6bfffcp-21F, 0x1.c71f2ap-15F, 0x1.55552ep-9F, 0x1.000002p-4F});
    return fma(x, z * p, x * 0.5F);
  };
  return Number::choose(both(a >= 0x1.02b852p+3F, a < Number::of(mufu::infinity_code)), far, near);
}

}  // namespace guardbit::emulator::cuda_math
