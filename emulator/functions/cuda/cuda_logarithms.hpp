#pragma once

#include "emulator/functions/cuda/polynomial.hpp"
#include "emulator/functions/numbers/masks.hpp"
#include "emulator/functions/unit/special_function_forms.hpp"

// CUDA's logarithms.
namespace guardbit::emulator::cuda_math {

/// y = 2^exponent (1 + rest), with the leading bits of 1 + rest from those of `least` up.
template <class Number>
struct Binade {
  Number exponent, rest;
};

/// The binade of a positive number; `offset` is added to its exponent.
template <class Number>
constexpr Binade<Number> binade_of(Number y, typename Number::Word least, Number offset) {
  const auto k = (bits(y) - least) & 0xff800000;
  return {fma(Number::of_integer(k), 0x1p-23F, offset), Number::of(bits(y) - k) - 1};
}

/// A subnormal number scaled up; every other one as it is.
template <class Number>
struct Normal {
  Number number, exponent;
};
template <class Number>
constexpr Normal<Number> made_normal(Number x, float scale, float exponent) {
  const auto is_subnormal = x < 0x1p-126F;
  return {select(is_subnormal, x * scale, x), select(is_subnormal, Number(exponent), Number(0))};
}

/// The natural logarithm, but for that of 0.
template <class Number>
constexpr Number logf_of_nonzero(Number x) {
  const Normal<Number> y = made_normal(x, 0x1p23F, -23);
  const Binade<Number> b = binade_of(y.number, 0x3f2aaaab, y.exponent);
  const Number f = b.rest;
  const Number p =
      polynomial(f, {-0x1.0aa04ep-3F, 0x1.2073ecp-3F, -0x1.f19b98p-4F, 0x1.1e52aap-3F,
                     -0x1.55b172p-3F, 0x1.99da16p-3F, -0x1.fffe44p-3F, 0x1.5554fp-2F, -0.5F});
  const Number result = fma(b.exponent, 0x1.62e43p-1F, fma(f * p, f, f));
  const Number infinity = Number::of(mufu::infinity_code);
  return select(bits(y.number) >= mufu::infinity_code, fma(y.number, infinity, infinity), result);
}

/// -infinity for zeros.
template <class Number>
constexpr Number with_log_of_zero(Number x, Number result) {
  return select(x == 0, -Number::of(mufu::infinity_code), result);
}

template <class Number>
constexpr Number logf(Number x) {
  return with_log_of_zero(x, logf_of_nonzero(x));
}
template <class Number>
constexpr Number log10f(Number x) {
  return with_log_of_zero(x, logf_of_nonzero(x) * 0x1.bcb7b2p-2F);
}

template <class Number>
constexpr Number log2f(Number x) {
  const Normal<Number> y = made_normal(x, 0x1p23F, -23);
  const Binade<Number> b = binade_of(y.number, 0x3f3504f3, y.exponent);
  const Number f = b.rest;
  const Number p = polynomial(
      f, {0x1.8d64fep-4F, -0x1.58fe6p-3F, 0x1.5f9e54p-3F, -0x1.6e9c86p-3F, 0x1.a417e8p-3F,
          -0x1.ec7916p-3F, 0x1.277f32p-2F, -0x1.715492p-2F, 0x1.ec7094p-2F, -0x1.715476p-1F});
  const Number result = b.exponent + fma(f, 0x1.715476p+0F, f * (f * p));
  const Number infinity = Number::of(mufu::infinity_code);
  return with_log_of_zero(
      x, select(bits(y.number) >= mufu::infinity_code, fma(y.number, infinity, infinity), result));
}

/// log(1 + x) = k log(2) + log(1 + f), where 1 + f = 2^-k + (2^-k - 1 of x's scaled code).
template <class Number>
constexpr Number log1pf(Number x) {
  const auto k = (bits(add_toward_zero(x, Number(1))) - 0x3f400000) & 0xff800000;
  const Number scaled = Number::of(bits(x) - k), quadruple = Number::of(0x40800000 - k);
  const Number f = fma(Number(0.25F), quadruple, -1) + scaled;
  const Number exponent = Number::of_integer(k) * 0x1p-23F;
  const Number p =
      polynomial(f, {-0x1.737efp-5F, 0x1.b00024p-4F, -0x1.0ef1cp-3F, 0x1.28c8eap-3F,
                     -0x1.54d1bap-3F, 0x1.995f3cp-3F, -0x1.000084p-2F, 0x1.5555ccp-2F, -0.5F});
  const Number result = fma(exponent, 0x1.62e43p-1F, fma(f * p, f, f));
  const Number infinity = Number::of(mufu::infinity_code);
  // of -0 the zero itself; infinity, NaN and all below -1
  const auto is_outside =
      either(both(bits(x) >= mufu::infinity_code, bits(x) < mufu::sign_bit), bits(x) >= 0xbf800001);
  const auto is_negative_zero = both(x == 0, bits(x) >= mufu::sign_bit);
  return select(is_negative_zero, -0.0F, select(is_outside, fma(x, infinity, infinity), result));
}

template <class Number>
constexpr Number intrinsic_logf(Number x) {
  return mufu::lg2_approx(x) * 0x1.62e43p-1F;
}
template <class Number>
constexpr Number intrinsic_log10f(Number x) {
  return mufu::lg2_approx(x) * 0x1.344136p-2F;
}

}  // namespace guardbit::emulator::cuda_math
