#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "emulator/functions/cuda/cuda_exponentials.hpp"
#include "emulator/functions/cuda/cuda_hyperbolics.hpp"
#include "emulator/functions/cuda/cuda_trigonometry.hpp"
#include "emulator/functions/numbers/masks.hpp"
#include "emulator/functions/numbers/narrowed.hpp"
#include "emulator/functions/unit/special_function_forms.hpp"

// CUDA's functions of FP16 and BF16 numbers, as programs over FP32: arguments are widened, and what
// a program gives is rounded to the format.
namespace guardbit::emulator::cuda_math {

constexpr float half_number(std::uint16_t code) {
  return std::bit_cast<float>(widened_code(formats::fp16, code));
}

/// The argument of an FP16 function whose rounded result CUDA corrects, and what it adds: codes.
struct HalfCorrection {
  std::uint16_t argument, added;
};

/// x rounded to FP16, with the corrections for `argument`.
template <class Number, std::size_t count>
constexpr Number corrected_half(Number x, Number argument,
                                const std::array<HalfCorrection, count>& corrections) {
  Number r = narrowed<formats::fp16>(x);
  for (const HalfCorrection& c : corrections) {
    const Number is_it = select(argument == half_number(c.argument), Number(1), 0);
    r = narrowed<formats::fp16>(fma(is_it, half_number(c.added), r));
  }
  return r;
}

namespace half {

inline constexpr std::array<HalfCorrection, 4> exp_corrections = {
    {{0x1f79, 0x9400}, {0x25cf, 0x9400}, {0xc13b, 0x0400}, {0xc1ef, 0x0200}}};
inline constexpr std::array<HalfCorrection, 5> exp10_corrections = {
    {{0x34de, 0x9800}, {0x9766, 0x9000}, {0x9972, 0x1000}, {0xa5c4, 0x1000}, {0xbf0a, 0x8100}}};
inline constexpr std::array<HalfCorrection, 4> log_corrections = {
    {{0x160d, 0x9c00}, {0x3bfe, 0x8010}, {0x3c0b, 0x8080}, {0x6051, 0x1c00}}};
inline constexpr std::array<HalfCorrection, 4> log10_corrections = {
    {{0x338f, 0x1000}, {0x33f8, 0x9000}, {0x57e1, 0x9800}, {0x719d, 0x9c00}}};
/// of rounded results
inline constexpr std::array<HalfCorrection, 2> log2_corrections = {
    {{0xa2e2, 0x8080}, {0xbf46, 0x9400}}};
inline constexpr std::array<HalfCorrection, 1> cos_corrections = {{{0x2b7c, 0x1000}}};
inline constexpr std::array<HalfCorrection, 2> sin_corrections = {
    {{0x32b3, 0x0800}, {0x5cb0, 0x9000}}};

template <class Number>
constexpr Number exp(Number x) {
  return corrected_half(mufu::ex2_approx_ftz(fma(x, 0x1.715476p+0F, -0.0F)), x, exp_corrections);
}
template <class Number>
constexpr Number exp10(Number x) {
  return corrected_half(mufu::ex2_approx_ftz(fma(x, 0x1.a934fp+1F, -0.0F)), x, exp10_corrections);
}
template <class Number>
constexpr Number exp2(Number x) {
  const Number power = mufu::ex2_approx_ftz(x);
  return fma(power, 0x1p-24F, power);
}
template <class Number>
constexpr Number log(Number x) {
  return corrected_half(mufu::lg2_approx_ftz(x) * 0x1.62e43p-1F, x, log_corrections);
}
template <class Number>
constexpr Number log10(Number x) {
  return corrected_half(mufu::lg2_approx_ftz(x) * 0x1.344136p-2F, x, log10_corrections);
}
template <class Number>
constexpr Number log2(Number x) {
  Number r = narrowed<formats::fp16>(mufu::lg2_approx_ftz(x));
  for (const HalfCorrection& c : log2_corrections) r = corrected_half(r, r, std::array{c});
  return r;
}

/// The sine of an FP16 angle and so many quarter turns.
template <class Number>
constexpr Number sine(Number x, std::uint32_t quarters) {
  const Number shifted = fma(x, 0x1.45f306p-1F, 0x1.8p+23F), k = shifted - 0x1.8p+23F;
  const Number r = fma(k, -0x1.4442dp-24F, fma(k, -0x1.921fb4p+0F, x)), z = r * r;
  const auto quarter = (bits(shifted) & 3) + quarters;
  const auto is_odd = (quarter & 1) == 1;
  const auto either = [&](float odd, float even) {
    return select(is_odd, Number(odd), Number(even));
  };
  Number p =
      fma(either(0x1.99eb9cp-16F, -0x1.9943f2p-13F), z, either(-0x1.6c0c34p-10F, 0x1.11073cp-7F));
  p = fma(fma(p, z, either(0x1.55554ap-5F, -0x1.555546p-3F)), z, either(-0.5F, 0));
  const Number s = fma(p, select(is_odd, z, r), select(is_odd, Number(1), r));
  return select((quarter & 2) == 2, -s, s);
}
template <class Number>
constexpr Number sin(Number x) {
  const Number r = sine(x, 0);
  return copysign(corrected_half(abs(r), abs(x), sin_corrections), r);
}
template <class Number>
constexpr Number cos(Number x) {
  return corrected_half(sine(x, 1), abs(x), cos_corrections);
}

/// A quotient of FP16 numbers; a small one is corrected before it is rounded.
template <class Number>
constexpr Number divide(Number x, Number y) {
  const Number reciprocal = mufu::rcp_approx_ftz(y), q = x * reciprocal;
  const Number magnitude = abs(narrowed<formats::fp16>(q));
  const auto is_small = both(Number(0) < magnitude, magnitude < half_number(0x008f));
  return select(is_small, fma(reciprocal, fma(-y, q, x), q), q);
}

}  // namespace half

namespace bfloat16 {

template <class Number>
constexpr Number exp(Number x) {
  return mufu::ex2_approx(x * 0x1.715478p+0F);
}
template <class Number>
constexpr Number exp10(Number x) {
  const Number r = mufu::ex2_approx(x * 0x1.a934fp+1F);
  return select(x == -0x1.2ap-6F, Number(0x1.eap-1F), r);
}
template <class Number>
constexpr Number log(Number x) {
  return mufu::lg2_approx(x) * 0x1.62e43p-1F;
}
template <class Number>
constexpr Number log10(Number x) {
  return mufu::lg2_approx(x) * 0x1.344136p-2F;
}
/// y is scaled where its reciprocal would be 0.
template <class Number>
constexpr Number divide(Number x, Number y) {
  const auto is_large = abs(y) >= 0x1p+126F;
  const Number q = mufu::div_approx(x, select(is_large, y * 0.25F, y));
  return select(is_large, fma(q, 0.25F, -0.0F), q);
}

}  // namespace bfloat16

}  // namespace guardbit::emulator::cuda_math
