#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>

#include "emulator/functions/cuda/cuda_double_functions.hpp"
#include "formats/value.hpp"

// Trigonometric functions of FP64 and others that use what they are made of, as CUDA 13.0 compiles
// them for sm_90. Results of an H200 confirm them (tests/python/named_calls).
namespace guardbit::emulator::cuda_math {

namespace doubles {

/// x = quarter quarter turns + rest, rest in radians.
struct WideAngle {
  double rest = 0;
  std::uint32_t quarter = 0;
};

/// Of a finite |x| of at least 2^31: the words of 2 / pi that cover the exponent (Payne and Hanek).
inline WideAngle large_wide_angle(double x) {
  constexpr std::size_t most = 4, words = 18;
  constexpr std::array<std::uint64_t, words> two_over_pi = {
      0x6bfb5fb11f8d5d08, 0x3d0739f78a5292ea, 0x7527bac7ebe5f17b, 0x4f463f669e5fea2d,
      0x6d367ecf27cb09b7, 0xef2f118b5a0a6d1f, 0x1ff897ffde05980f, 0x9c845f8bbdf9283b,
      0x3991d639835339f4, 0xe99c7026b45f7e41, 0xe88235f52ebb4484, 0xfe1deb1cb129a73e,
      0x06492eea09d1921c, 0xb7246e3a424dd2e0, 0xfe5163abdebbc561, 0xdb6295993c439041,
      0xfc2757d1f534ddc0, 0xa2f9836e4e441529};
  constexpr std::uint64_t half_pi = 0xc90fdaa22168c235;
  const auto code = std::bit_cast<std::uint64_t>(x);
  const std::uint32_t exponent = (static_cast<std::uint32_t>(code >> 52) & 2047) - 1024;
  const std::size_t first = 15 - exponent / 64;
  const std::uint32_t shift = exponent % 64;
  const std::uint64_t significand = code << 11 | 0x8000000000000000;
  std::array<std::uint64_t, most + 1> product{};
  std::uint64_t carry = 0;
  std::size_t count = 0;
  for (; count < most && first + count < words; ++count) {
    const formats::uint128 sum = formats::uint128{two_over_pi[first + count]} * significand + carry;
    product[count] = static_cast<std::uint64_t>(sum);
    carry = static_cast<std::uint64_t>(sum >> 64);
  }
  product[count] = carry;
  std::uint64_t high = product[3], low = product[2];
  if (shift != 0) {
    high = high << shift | low >> (64 - shift);
    low = low << shift | product[1] >> (64 - shift);
  }
  std::uint32_t quarter = static_cast<std::uint32_t>(high >> 62);
  formats::uint128 rest = (formats::uint128{high} << 64 | low) << 2;
  // The nearest quarter turn: what is left may be negative.
  const bool is_past_half = (high >> 61 & 1) != 0;
  const bool is_negative = code >> 63 != 0;
  if (is_past_half) {
    ++quarter;
    rest = 0 - rest;
  }
  auto leading = static_cast<std::uint64_t>(rest >> 64);
  int zeros = std::countl_zero(leading);
  if (zeros > 0) leading = static_cast<std::uint64_t>(zeros > 63 ? rest : rest << zeros >> 64);
  formats::uint128 radians = formats::uint128{leading} * half_pi;
  if (static_cast<std::int64_t>(radians >> 64) > 0) {
    radians <<= 1;
    ++zeros;
  }
  const std::uint64_t digits = static_cast<std::uint64_t>(radians >> 64) + 1;
  const std::uint64_t magnitude =
      0x3fe0000000000000 - (static_cast<std::uint64_t>(zeros) << 52) + (((digits >> 10) + 1) >> 1);
  const double found = std::bit_cast<double>(magnitude);
  return {is_negative != is_past_half ? -found : found, is_negative ? 0 - quarter : quarter};
}

inline WideAngle wide_angle(double x) {
  const double magnitude = std::abs(x);
  if (magnitude == infinite || magnitude != magnitude) return {x * 0, 0};
  if (magnitude >= 0x1p31) return large_wide_angle(x);
  const double turns = std::nearbyint(x * 0x1.45f306dc9c883p-1);
  const auto quarter = static_cast<std::int32_t>(turns);
  const double n = quarter;  // of -0 it makes +0
  const double rest = std::fma(-n, 0x1.b839a252049cp-104,
                               std::fma(-n, 0x1.1a62633145cp-54, std::fma(-n, high_half_pi, x)));
  return {rest, static_cast<std::uint32_t>(quarter)};
}

/// The sine of what is left, or its cosine for an odd quarter, with the sign of the quarter.
inline double sine_of(WideAngle angle) {
  const double square = angle.rest * angle.rest;
  double result = (angle.quarter & 1) != 0 ? cosine_by_square(square)
                                           : std::fma(sine_factor(square), angle.rest, angle.rest);
  if ((angle.quarter & 2) != 0) result = std::fma(result, -1.0, 0.0);
  return result;
}

}  // namespace doubles

inline double sin(double x) { return doubles::sine_of(doubles::wide_angle(x)); }
inline double cos(double x) {
  doubles::WideAngle angle = doubles::wide_angle(x);
  ++angle.quarter;
  return doubles::sine_of(angle);
}

/// A polynomial of what is left; of an odd quarter its negative inverse, with the bits that the sum
/// lost.
inline double tan(double x) {
  using namespace doubles;
  const WideAngle angle = wide_angle(x);
  const double rest = angle.rest, square = rest * rest;
  const double p =
      square *
      polynomial(square, {0x1.48dac2799bcb9p-17, -0x1.9757c5b27ebb1p-16, 0x1.980e90fd91e04p-15,
                          -0x1.ae2b0417d7e1dp-16, 0x1.19f5341bfba57p-14, 0x1.5e791a00f6919p-14,
                          0x1.ff2e7fadec73ap-13, 0x1.34bc1b206da62p-11, 0x1.7db18ef2f83f9p-10,
                          0x1.d6d2e7ae49fbcp-9, 0x1.226e3a816a776p-7, 0x1.664f485d2566p-6,
                          0x1.ba1ba1babf31dp-5, 0x1.11111111105d2p-3, 0x1.555555555555ep-2});
  const double tangent = std::fma(p, rest, rest);
  if ((angle.quarter & 1) == 0) return tangent;
  const double lost = std::fma(p, rest, -(tangent - rest));
  const double of_tangent = -inverse(tangent);
  const double error = std::fma(of_tangent, lost, std::fma(tangent, of_tangent, 1.0));
  return std::fma(error, of_tangent, of_tangent);
}

inline double log2(double x) {
  const double logarithm = cuda_math::log(x);
  return std::fma(logarithm, 0x1.71547652b82fep0, logarithm * 0x1.777d0ffda0d24p-56);
}
inline double log10(double x) {
  const double logarithm = cuda_math::log(x);
  return std::fma(logarithm, 0x1.bcb7b1526e50ep-2, logarithm * 0x1.95355baaafad3p-57);
}

/// asin: above about 0.57 pi / 2 - 2 asin(sqrt((1 - |x|) / 2)).
inline double asin(double x) {
  using namespace doubles;
  if (std::abs(high_as_float(x)) < std::bit_cast<float>(0x3fe26666))
    return std::fma(polynomial_of_asin(x * x), x, x);
  const double half = std::fma(-0.5, std::abs(x), 0.5);
  double start = half == 0 ? half : root(half);
  if (high_word(half) < 0) start = std::numeric_limits<double>::quiet_NaN();
  const double twice = start * -2;
  constexpr double quarter_turn = high_half_pi / 2;
  const double angle =
      (twice + quarter_turn) + std::fma(twice, polynomial_of_asin(half), low_half_pi);
  return std::copysign(angle + quarter_turn, x);
}

/// asinh: log1p of |x| + |x| (|x| / (1 + sqrt(x x + 1))), or of |x| plus ln(2).
inline double asinh(double x) {
  using namespace doubles;
  const double magnitude = std::abs(x), square = std::fma(x, x, 1.0);
  const bool is_large = high_of_magnitude(x) > 0x43dfffff;
  const double estimate = estimated_rsqrt(square);
  const double error = std::fma(square, -(estimate * estimate), 1.0);
  const double of_root = std::fma(std::fma(0.375, error, 0.5), error * estimate, estimate);
  const double share = inverse(std::fma(square, of_root, 1.0));
  const double inner = is_large ? magnitude : std::fma(magnitude, magnitude * share, magnitude);
  const double result = cuda_math::log1p(inner);
  return std::copysign(is_large ? result + high_ln2 : result, x);
}

/// atanh: log1p(2 |x| / (1 - |x|)) / 2.
inline double atanh(double x) {
  const double magnitude = std::abs(x);
  return std::copysign(cuda_math::log1p((magnitude + magnitude) / (1 - magnitude)) * 0.5, x);
}

inline double atan2(double y, double x) {
  using namespace doubles;
  const double one = std::abs(y), other = std::abs(x);
  const double sum = one + other;
  if (sum != sum) return sum;
  const bool is_steep = one > other, is_left = high_word(x) < 0;
  const double greater = is_steep ? one : other;
  constexpr double pi = 2 * high_half_pi;
  double angle = is_left ? pi : 0;
  if (greater != 0) {
    const double t = (is_steep ? other : one) / greater, square = t * t;
    const double own = std::fma(square * polynomial_of_atan(square), t, t);
    angle = is_left ? pi - own : own;
    if (is_steep) angle = (is_left ? own : -own) + high_half_pi;
    if (one == other) angle = is_left ? 0x1.2d97c7f3321d2p+1 : high_half_pi / 2;
  }
  return std::copysign(angle, y);
}

/// erfc: e^(-x x) by a polynomial of (|x| - 4) / (|x| + 4), divided by 1 + 2 |x|.
inline double erfc(double x) {
  using namespace doubles;
  const double magnitude = std::abs(x);
  if (x != x) return x + x;
  if (magnitude == infinite) return x < 0 ? 2 : 0;
  const double of_sum = inverse(magnitude + 4);
  const double start = (magnitude - 4) * of_sum;
  const double error = std::fma(-start, magnitude, std::fma(-4, start + 1, magnitude));
  const double t = std::fma(of_sum, error, start);
  const double p =
      polynomial(t, {-0x1.8774ad4e0bfd7p-32, -0x1.4e1c6fd03d328p-27, -0x1.330149f7a56b6p-27,
                     0x1.bedded8376273p-24,  0x1.f9254c3abf22bp-25,  -0x1.b9068c2148cfp-21,
                     0x1.4c6454db34009p-22,  0x1.7f1c378f2311dp-18,  -0x1.78e051c6d5c58p-17,
                     -0x1.995b4ead14a9p-16,  0x1.3be27cf0a29b2p-13,  -0x1.a1def3e81672ep-13,
                     -0x1.8d4abe68c1713p-11, 0x1.49c67210dd6b4p-8,   -0x1.096238568e357p-6,
                     0x1.3079edf8c2dc9p-5,   -0x1.0fb06dff601fcp-4,  0x1.7fee004dfbcdcp-4,
                     -0x1.9ddb23c3db8c6p-4,  0x1.16ecefcfa5fdap-4,   0x1.f7f5df66fb6d6p-7,
                     -0x1.1df1ad154a29dp-3,  0x1.3ba5916e9fd7fp0});
  const double of_divisor = inverse(std::fma(2, magnitude, 1.0));
  const double first = p * of_divisor;
  const double quotient = std::fma(std::fma(magnitude, first * -2, p) - first, of_divisor, first);
  const double square = magnitude * magnitude;
  const PowerOfTwo power = nearest_power_of_two(-square);
  const double density = scaled_twice(small_exp(power.rest), power.n);
  const double lost = std::fma(-magnitude, magnitude, square);
  const double result =
      high_word(magnitude) > 0x403b4000 ? 0 : quotient * std::fma(density, lost, density);
  return high_word(x) < 0 ? 2 - result : result;
}

}  // namespace guardbit::emulator::cuda_math
