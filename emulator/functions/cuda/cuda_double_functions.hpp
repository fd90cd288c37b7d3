#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "emulator/functions/cuda/cuda_doubles.hpp"

// More of CUDA's functions of FP64, as CUDA 13.0 compiles them for sm_90: powers, hyperbolic and
// inverse functions, the error function, lengths. Results of an H200 on drawn operands confirm
// them (tests/python/drawn_calls).
namespace guardbit::emulator::cuda_math {

namespace doubles {

inline constexpr double infinite = std::numeric_limits<double>::infinity();
inline constexpr double high_half_pi = 0x1.921fb54442d18p0, low_half_pi = 0x1.1a62633145c07p-54;
inline constexpr std::int32_t top_exponent = 0x7ff00000;

inline std::int32_t high_of_magnitude(double x) { return high_word(x) & 0x7fffffff; }
/// High words order numbers of both signs as FP32 does.
inline float high_as_float(double x) { return std::bit_cast<float>(high_word(x)); }
/// A number whose lower word is zero.
inline double from_high_word(std::int32_t high) {
  return std::bit_cast<double>(static_cast<std::uint64_t>(static_cast<std::uint32_t>(high)) << 32);
}

inline double estimated_rsqrt(double x) {
  return std::bit_cast<double>(mufu::evaluate(mufu::rsqrt64_form, std::bit_cast<std::uint64_t>(x)));
}

/// A square root inside of other functions, which has no steps for numbers out of range.
inline double root(double x) {
  const double estimate = estimated_rsqrt(x), half = scaled(estimate, -1);
  const double first = x * estimate;
  const double second = std::fma(std::fma(first, -first, x), half, first);
  const double slope = std::fma(std::fma(estimate, -second, 1.0), half, half);
  return std::fma(std::fma(second, -second, x), slope, second);
}

/// (e^x - 1) 2^shift.
inline double scaled_expm1(double x, std::int32_t shift) {
  PowerOfTwo power = nearest_power_of_two(x);
  power.n += shift;
  const std::uint32_t doubled = static_cast<std::uint32_t>(high_word(x)) << 1;
  if (doubled < 0x7fb3e647) power = {x, 0};
  const double rest = power.rest;
  const double p =
      polynomial(rest, {0x1.1f4076acd15b6p-29, 0x1.af86d8ebd13cdp-26, 0x1.27e5092ba033dp-22,
                        0x1.71dde6c5f9da1p-19, 0x1.a01a018d034e6p-16, 0x1.a01a01b3b694p-13,
                        0x1.6c16c16c1b5ddp-10, 0x1.111111110f74dp-7, 0x1.555555555554dp-5,
                        0x1.5555555555557p-3, 0.5});
  const double of_rest = std::fma(rest * p, rest, rest);
  const bool is_last = power.n == 1024;
  const double factor = scaled(1, power.n - (is_last ? 1 : 0));
  double result = std::fma(of_rest, factor, factor - scaled(1, shift));
  if (is_last) result = result + result;
  return doubled == 0 ? rest : result;
}

/// e^x = (1 + rest (1 + product)) power, the power of two by FP32's unit.
struct ShortExponential {
  double rest = 0, product = 0, power = 0;

  /// 1 - e^x of what the polynomial gave.
  double subtracted_from_one(double of_rest) const { return std::fma(-of_rest, power, 1 - power); }
};
inline ShortExponential short_exponential(double x) {
  const float whole = std::nearbyint(static_cast<float>(x) * 0x1.715476p+0F);
  const double rest = std::fma(-double{whole}, high_ln2, x);
  const double p =
      polynomial(rest, {0x1.ae904a4741b81p-26, 0x1.28a27f89b6999p-22, 0x1.71de715ff7e07p-19,
                        0x1.a019a6b0ac45ap-16, 0x1.a01a017eed94fp-13, 0x1.6c16c17f2a71bp-10,
                        0x1.11111111173c4p-7, 0x1.555555555211ap-5, 0x1.555555555554p-3,
                        0x1.0000000000005p-1});
  // The unit flushes subnormal powers.
  return {rest, rest * p, whole < -126 ? 0 : std::exp2(double{whole})};
}

/// asin(x) / x - 1 by x x.
inline double polynomial_of_asin(double square) {
  return square *
         polynomial(square, {0x1.0066bdc1895e9p-4, -0x1.3823b180754afp-4, 0x1.11e52cc2f79aep-4,
                             -0x1.24eaf3526861bp-6, 0x1.1df02a31e6cb7p-6, 0x1.47d18b0eec6ccp-7,
                             0x1.d0af961ba53bp-7, 0x1.1bf7734cf1c48p-6, 0x1.6e91483144ef7p-6,
                             0x1.f1c6e0a4f9f81p-6, 0x1.6db6dc27fa92bp-5, 0x1.333333320f91bp-4,
                             0x1.5555555555f4dp-3});
}

/// atan(x) / x - 1, divided by x x.
inline double polynomial_of_atan(double square) {
  return polynomial(
      square,
      {-0x1.53e1d2a25ff7ep-16, 0x1.d3b63dbb65b49p-13, -0x1.312788dde082ep-10, 0x1.f9690c8249315p-9,
       -0x1.2cf5aabc7cf0dp-7, 0x1.162b0b2a3bfdep-6, -0x1.a7256feb6fc6bp-6, 0x1.171560ce4a489p-5,
       -0x1.4f44d841450e4p-5, 0x1.7ee3d3f36bb95p-5, -0x1.ad32ae04a9fd1p-5, 0x1.e17813d66954fp-5,
       -0x1.11089ca9a5bcdp-4, 0x1.3b12b2db51738p-4, -0x1.745d022f8dc5cp-4, 0x1.c71c709dfe927p-4,
       -0x1.2492491fa1744p-3, 0x1.99999999840d2p-3, -0x1.555555555544cp-2});
}

/// A sum of two numbers, the second smaller by far, that together have more bits than one.
struct Pair {
  double high = 0, low = 0;
};
inline Pair sum_of(double greater, double lesser) {
  const double sum = greater + lesser;
  return {sum, lesser + (greater - sum)};
}

/// The logarithm of an x > 0 with the bits that pow needs.
inline Pair long_log(double x) {
  std::int32_t high = high_word(x), exponent = high >> 20;
  std::uint32_t low = low_word(x);
  if (exponent == 0) {
    x = x * 0x1p54;
    high = high_word(x);
    low = low_word(x);
    exponent = (high >> 20) - 54;
  }
  exponent -= 1023;
  const std::uint32_t of_fraction = (static_cast<std::uint32_t>(high) & 0x000fffff) | 0x3ff00000;
  double y = std::bit_cast<double>((static_cast<std::uint64_t>(of_fraction) << 32) | low);
  if (high_word(y) >= 0x3ff6a09f) {
    y = scaled(y, -1);
    ++exponent;
  }
  const double f = y - 1, of_divisor = inverse(y + 1);
  const double half = f * of_divisor, u = std::fma(f, of_divisor, half);
  const double square = u * u;
  const double p =
      polynomial(square, {0x1.0f5ff7d2cafe2p-20, 0x1.0f5d241ad3b5ap-18, 0x1.3b20a75488a3fp-16,
                          0x1.745cde4faecd5p-14, 0x1.c71c7258a578bp-12, 0x1.249249242b91p-9,
                          0x1.9999999999dfbp-7});
  const double difference = f - u;
  const double lost = of_divisor * std::fma(-u, f, difference + difference);
  constexpr double twelfth = 0x1.5555555555555p-4;
  const double of_square = std::fma(square, p, twelfth);
  const double below = (std::fma(square, p, twelfth - of_square) + 0.0) + -0x1.6a4cb00b9e7bp-59;
  const double factor = of_square + below;
  const double of_factor = below + (of_square - factor);
  const double second = u * u;
  const double of_second = std::fma(u, scaled(lost, 1), std::fma(u, u, -second));
  const double third = second * u;
  const double of_third =
      std::fma(of_second, u, std::fma(second, lost, std::fma(second, u, -third)));
  const double product = factor * third;
  const double of_product =
      std::fma(of_factor, third, std::fma(factor, of_third, std::fma(factor, third, -product)));
  const Pair rest = sum_of(product, of_product);
  const Pair whole = sum_of(u, rest.high);
  const Pair all = sum_of(whole.high, lost + (rest.low + whole.low));
  const auto n = static_cast<double>(exponent);
  const double top = std::fma(n, high_ln2, all.high);
  const double cut = std::fma(-n, high_ln2, top) - all.high;
  return sum_of(top, std::fma(n, low_ln2, all.low - cut));
}

/// x^y of an x > 0.
inline double positive_power(double x, double y) {
  const Pair logarithm = long_log(x);
  // An exponent whose product would overflow is made less.
  if ((static_cast<std::uint32_t>(high_word(y)) << 1) > 0xfdffffff) {
    y = std::bit_cast<double>(std::bit_cast<std::uint64_t>(y) & 0xff0fffffffffffff);
  }
  const double product = logarithm.high * y;
  const Pair exponent =
      sum_of(product, std::fma(logarithm.low, y, std::fma(logarithm.high, y, -product)));
  const PowerOfTwo power = nearest_power_of_two(exponent.high);
  const double of_rest = small_exp(power.rest);
  double result = scaled(of_rest, power.n);
  const float magnitude = std::abs(high_as_float(exponent.high));
  if (!(magnitude < std::bit_cast<float>(0x4086232b))) {
    if (magnitude < std::bit_cast<float>(0x40874800)) {
      result = scaled_twice(of_rest, power.n);
    } else {
      result = exponent.high < 0 ? 0 : exponent.high + infinite;
    }
  }
  return std::abs(result) == infinite ? result : std::fma(result, exponent.low, result);
}

}  // namespace doubles

/// e^x - 1.
inline double expm1(double x) {
  using namespace doubles;
  const float high = high_as_float(x);
  if (high < std::bit_cast<float>(0x40862e43) && high > std::bit_cast<float>(0xc04a8000))
    return scaled_expm1(x, 0);
  if (x != x) return x + x;
  return x < 0 ? -1 : infinite;
}

inline double exp2(double x) {
  using namespace doubles;
  constexpr double rounding = 0x1.8p52;
  const double sum = x + rounding;
  const double rest = x - (sum - rounding);
  const double of_rest = small_exp(std::fma(rest, high_ln2, rest * low_ln2));
  const auto n = static_cast<std::int32_t>(low_word(sum));
  const float magnitude = std::abs(high_as_float(x));
  if (magnitude < std::bit_cast<float>(0x408ff000)) return scaled(of_rest, n);
  if (magnitude < std::bit_cast<float>(0x4090cc00)) return scaled_twice(of_rest, n);
  if (x != x) return x + x;
  return x < 0 ? 0 : infinite;
}

/// tanh: a polynomial of small numbers, else 1 - 2 / (1 + e^(2 |x|)).
inline double tanh(double x) {
  using namespace doubles;
  const double magnitude = std::abs(x);
  if (!(magnitude >= 0x1.4f92224dd2f1ap-1)) {
    const double square = x * x;
    const double p =
        polynomial(square, {-0x1.0bc46e2f5e964p-16, 0x1.4359f420afc3dp-14, -0x1.df9f0728c5d84p-13,
                            0x1.337d1cec4f033p-11, -0x1.7d6e9674335b3p-10, 0x1.d6d000d7aad3dp-9,
                            -0x1.226e1f3cf1ef5p-7, 0x1.664f47ec0c8cfp-6, -0x1.ba1ba1b80ab4p-5,
                            0x1.111111110fa4ap-3, -0x1.555555555555p-2, 0.0});
    return std::fma(p, x, x);
  }
  if (high_word(magnitude) > 0x40330fc1) return std::copysign(1.0, x);
  const ShortExponential e = short_exponential(magnitude + magnitude);
  const double divisor = 2 - e.subtracted_from_one(std::fma(e.product, e.rest, e.rest));
  return std::copysign(std::fma(-2, inverse(divisor), 1.0), x);
}

inline double sinh(double x) {
  using namespace doubles;
  const double magnitude = std::abs(x);
  if (high_word(magnitude) < 0x3ff00000) {
    const double square = magnitude * magnitude;
    const double p =
        polynomial(square, {0x1.b4c75ab274c53p-41, 0x1.611a561d87defp-33, 0x1.ae64671b18f5cp-26,
                            0x1.71de3a465b1e4p-19, 0x1.a01a01a02899dp-13, 0x1.11111111110a6p-7,
                            0x1.5555555555556p-3});
    return std::copysign(std::fma(square * p, magnitude, magnitude), x);
  }
  if (magnitude >= 0x1.633ce8fb9f87ep9) return std::copysign(infinite, x);
  const double half = scaled_expm1(magnitude, -1);
  return std::copysign(half + half / std::fma(2, half, 1.0), x);
}

/// cosh: by e^|x| / 4, which is in range.
inline double cosh(double x) {
  using namespace doubles;
  const double magnitude = std::abs(x);
  if (high_word(magnitude) >= 0x408633cf) return x != x ? x + x : infinite;
  const PowerOfTwo power = nearest_power_of_two(magnitude);
  const double quarter = scaled(small_exp(power.rest), power.n - 2);
  const double half = std::fma(inverse(quarter), 0x1p-4, quarter);
  return half + half;
}

/// acosh: log1p of x - 1 + sqrt(x x - 1), or of 2 x less ln(2) where the square is too large.
inline double acosh(double x) {
  using namespace doubles;
  const double above = x - 1;
  const bool is_large = static_cast<std::uint32_t>(high_word(above)) > 0x432fffff;
  double added = -0x1.0000000000001p0;
  if (!is_large) added = high_word(above) == 0 ? 0 : root(std::fma(x, x, -1.0));
  const double result = cuda_math::log1p(above + added);
  return is_large ? result + high_ln2 : result;
}

/// acos: pi / 2 - asin(x), near 1 by sqrt(1 - |x|).
inline double acos(double x) {
  using namespace doubles;
  const double magnitude = std::abs(x);
  const bool is_negative = high_word(x) < 0;
  if (high_word(magnitude) < 0x3fe26666) {
    const double angle = std::fma(polynomial_of_asin(magnitude * magnitude), magnitude, magnitude);
    return is_negative ? high_half_pi + (angle + low_half_pi)
                       : high_half_pi - (angle - low_half_pi);
  }
  const double rest = 1 - magnitude;
  double angle = magnitude * 0;
  if (high_word(rest) >= 1) {
    const double p =
        polynomial(rest, {0x1.715b371155f7p-19, -0x1.ac2fe66faac4bp-20, 0x1.9a9b88efcd9b8p-18,
                          0x1.d0f40a8a0c4c3p-18, 0x1.46d4cfa9e0e1fp-16, 0x1.79c168d1e2422p-15,
                          0x1.c9a88c3bca54p-14, 0x1.1c4e64bd476dfp-12, 0x1.6e8ba60009c8fp-11,
                          0x1.f1c71c62b05a2p-10, 0x1.6db6db6dc9f2cp-8, 0x1.333333333329cp-6,
                          0x1.5555555555555p-4});
    const double start = scaled(root(scaled(rest, -1)), 1);
    angle = std::fma(rest * p, start, start);
  }
  if (high_word(rest) < 0) angle = angle * infinite;
  return is_negative ? 2 * high_half_pi - (angle - 2 * low_half_pi) : angle;
}

inline double atan(double x) {
  using namespace doubles;
  const double magnitude = std::abs(x);
  const bool is_inverse = magnitude > 1;
  double t = magnitude;
  if (is_inverse) t = magnitude == infinite ? 0 : inverse(magnitude);
  const double square = t * t;
  const double angle = std::fma(square * polynomial_of_atan(square), t, t);
  return std::copysign(is_inverse ? high_half_pi - angle : angle, x);
}

/// erf: 1 - e^-q, q a polynomial of |x| with the bits that its sum lost.
inline double erf(double x) {
  using namespace doubles;
  const double magnitude = std::abs(x);
  if (magnitude >= 0x1.7afb48dc96626p2) return std::copysign(1.0, x);
  const double p =
      polynomial(magnitude, {-0x1.0679afba6f279p-48, 0x1.7088fdb46fa5fp-43,  -0x1.df9f9b976a9b2p-39,
                             0x1.7f1f5590cc332p-35,  -0x1.a28a3cd2d56c4p-32, 0x1.485ee67835925p-29,
                             -0x1.76db45919f583p-27, 0x1.2d698d98c8d71p-25,  -0x1.20a2c7155d5c6p-24,
                             -0x1.1d29b37ca1397p-27, 0x1.2ef6cc0f67a49p-21,  -0x1.102b892333b6fp-19,
                             0x1.a30375ba9a84ep-19,  0x1.aad18dedea43ep-19,  -0x1.f05355bc5b225p-16,
                             0x1.0e37a3108bc8bp-14,  0x1.b292d828e5cb2p-16,  -0x1.356626ebf9bfap-11,
                             0x1.bca68f73d6afcp-10,  -0x1.b6b69ebbc280bp-13, -0x1.396685912a453p-6,
                             0x1.a4f4e2a1abef8p-4,   0x1.45f306dc9c8bbp-1,   0x1.06eba8214db69p-3});
  const double q = std::fma(p, magnitude, magnitude);
  const double lost = std::fma(p, magnitude, magnitude - q);
  const ShortExponential e = short_exponential(-q);
  return std::copysign(e.subtracted_from_one(e.rest + std::fma(e.product, e.rest, -lost)), x);
}

/// sqrt(x x + y y), scaled by a power of four.
inline double hypot(double x, double y) {
  using namespace doubles;
  const auto [less, more] = std::minmax(
      {std::bit_cast<std::uint64_t>(std::abs(x)), std::bit_cast<std::uint64_t>(std::abs(y))});
  const double small = std::bit_cast<double>(less), large = std::bit_cast<double>(more);
  if (high_word(small) >= top_exponent) return small;
  if (small == 0) return large;
  const std::int32_t exponent = high_word(large) & ~0x3fffff;
  const double scale = from_high_word(0x7fd00000 - exponent);
  const double short_one = scale * small, long_one = scale * large;
  const double sum = std::fma(long_one, long_one, short_one * short_one);
  const double square = std::fmin(sum, std::numeric_limits<double>::max());
  const double estimate = estimated_rsqrt(square);
  const double error = std::fma(square, -(estimate * estimate), 1.0);
  const double of_root = std::fma(std::fma(0.375, error, 0.5), error * estimate, estimate);
  return sum * of_root * from_high_word(exponent | 0x100000);
}

/// x^y: of |x|, with its sign where y is an odd integer.
inline double pow(double x, double y) {
  using namespace doubles;
  if (x == 1 || y == 0) return 1;
  if (x != x || y != y) return x + y;
  const std::int32_t shift = ((high_word(y) & top_exponent) >> 20) - 1012;
  const bool is_odd =
      shift >= 0 && shift < 64 && std::bit_cast<std::uint64_t>(y) << shift == 0x8000000000000000;
  const bool has_sign = is_odd && std::abs(y) != 0.5;
  const bool is_negative = high_word(x) < 0;
  if (x == 0 || std::abs(x) == infinite) {
    const double result = (x == 0) == (y < 0) ? infinite : 0;
    return is_negative && has_sign ? -result : result;
  }
  if (std::abs(y) == infinite) {
    if (x == -1) return 1;
    return (std::abs(x) > 1) == (y > 0) ? infinite : 0;
  }
  if (is_negative && std::trunc(y) != y) return std::bit_cast<double>(0xfff8000000000000);
  const double result = positive_power(std::abs(x), y);
  return is_negative && is_odd ? -result : result;
}

}  // namespace guardbit::emulator::cuda_math
