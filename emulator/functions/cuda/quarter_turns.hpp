#pragma once

#include <array>
#include <cstdint>

#include "emulator/functions/cuda/polynomial.hpp"
#include "emulator/functions/unit/special_function_unit.hpp"

// How CUDA's trigonometric functions reduce an angle to an eighth of a turn.
namespace guardbit::emulator::cuda_math {

/// x = (quarter + r) quarter turns up to whole turns, r in radians; quarters modulo 2^32.
template <class Number>
struct Angle {
  typename Number::Word quarter;
  Number r;
};

/// A product of |x| with 2 / pi, of which whole turns are left out.
struct LargeAngle {
  /// of the nearest quarter turn, as a signed number
  std::uint32_t quarter;
  /// what is left, in 2^-64 quarter turns, and its sign
  std::int64_t rest;
  bool negative;
};

/// Of a finite |x| of at least 2^16: 2 / pi in words that cover the exponent (Payne and Hanek).
constexpr LargeAngle large_angle(std::uint32_t code) {
  constexpr std::array<std::uint32_t, 6> two_over_pi = {0x3c439041, 0xdb629599, 0xf534ddc0,
                                                        0xfc2757d1, 0x4e441529, 0xa2f9836e};
  const std::uint32_t significand = code << 8 | 0x80000000;
  std::array<std::uint32_t, 7> product{};
  std::uint64_t carry = 0;
  for (std::size_t i = 0; i < two_over_pi.size(); ++i) {
    carry += std::uint64_t{two_over_pi[i]} * significand;
    product[i] = static_cast<std::uint32_t>(carry);
    carry >>= 32;
  }
  product[6] = static_cast<std::uint32_t>(carry);
  const std::uint32_t exponent = (code >> 23 & 0xff) - 128, word = exponent / 32 % 4,
                      shift = exponent % 32;
  const std::uint64_t leading = std::uint64_t{product[6 - word]} << 32 | product[5 - word];
  const std::uint64_t bits =
      shift == 0 ? leading : leading << shift | product[4 - word] >> (32 - shift);
  const std::uint64_t rest = bits << 2;
  // The nearest quarter turn: what is left may be negative.
  const bool is_past_half = rest >> 63 != 0;
  const std::uint32_t quarter = static_cast<std::uint32_t>(bits >> 62) + (is_past_half ? 1U : 0U);
  const bool negative = (code & mufu::sign_bit) != 0;
  return {negative ? 0 - quarter : quarter, static_cast<std::int64_t>(is_past_half ? ~rest : rest),
          negative != is_past_half};
}

/// The least |x| that the three products of small_angle do not reduce well enough.
inline constexpr float least_large_angle = 0x1.9c8fp+16F;

template <class Number>
constexpr Angle<Number> small_angle(Number x) {
  const auto quarter = integer(rint(x * 0x1.45f306p-1F));
  const Number k = Number::of_integer(quarter);  // of -0 it makes +0
  const Number r = fma(k, -0x1.84698ap-48F, fma(k, -0x1.4442dp-24F, fma(k, -0x1.921fb4p+0F, x)));
  return {quarter, r};
}

template <class Number>
constexpr Angle<Number> angle_of(Number x) {
  if (!(abs(x) >= least_large_angle)) return small_angle(x);
  if (abs(x) == Number::of(mufu::infinity_code)) return {0, x * 0};
  const LargeAngle angle = large_angle(bits(x));
  const Number r = quarter_turns(Number(), angle.rest);
  return {angle.quarter, angle.negative ? -r : r};
}

}  // namespace guardbit::emulator::cuda_math
