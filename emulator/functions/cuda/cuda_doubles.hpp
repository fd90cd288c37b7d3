#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "emulator/functions/cuda/polynomial.hpp"
#include "emulator/functions/unit/double_rsqrt.hpp"
#include "emulator/functions/unit/special_function_formats.hpp"

// CUDA's functions of FP64, as CUDA 13.0 compiles them for sm_90. Each step rounds once. Results of
// an H200 on drawn operands confirm them (tests/golden/operators/doubles.safetensors).
namespace guardbit::emulator::cuda_math {

namespace doubles {

inline constexpr double high_ln2 = 0x1.62e42fefa39efp-1, low_ln2 = 0x1.abc9e3b39803fp-56;

inline std::int32_t high_word(double x) {
  return static_cast<std::int32_t>(std::bit_cast<std::uint64_t>(x) >> 32);
}
inline std::uint32_t low_word(double x) {
  return static_cast<std::uint32_t>(std::bit_cast<std::uint64_t>(x));
}

/// x 2^n by an addition to the exponent's bits.
inline double scaled(double x, std::int32_t n) {
  return std::bit_cast<double>(std::bit_cast<std::uint64_t>(x) +
                               (static_cast<std::uint64_t>(static_cast<std::uint32_t>(n)) << 52));
}

/// The unit's estimate of 1 / x, and one step that corrects it.
inline double inverse(double x) {
  const double estimate =
      std::bit_cast<double>(mufu::evaluate(mufu::rcp64_form, std::bit_cast<std::uint64_t>(x)));
  const double error = std::fma(-x, estimate, 1.0);
  return std::fma(std::fma(error, error, error), estimate, estimate);
}

/// x = n ln(2) + rest.
struct PowerOfTwo {
  double rest = 0;
  std::int32_t n = 0;
};
inline PowerOfTwo nearest_power_of_two(double x) {
  // The integer's low bits of the sum are n.
  constexpr double rounding = 0x1.8p52;
  const double sum = std::fma(x, 0x1.71547652b82fep0, rounding);
  const double whole = sum - rounding;
  return {std::fma(whole, -low_ln2, std::fma(whole, -high_ln2, x)),
          static_cast<std::int32_t>(low_word(sum))};
}

/// e^x of an x between -ln(2) / 2 and ln(2) / 2.
inline double small_exp(double x) {
  return polynomial(
      x, {0x1.ade1569ce2bdfp-26, 0x1.28af3fca213eap-22, 0x1.71dee62401315p-19,
          0x1.a01997c89eb71p-16, 0x1.a01a014761f65p-13, 0x1.6c16c1852b7afp-10, 0x1.1111111122322p-7,
          0x1.55555555502a1p-5, 0x1.5555555555511p-3, 0x1.000000000000bp-1, 1.0, 1.0});
}

/// x 2^n in two factors, where 2^n is out of range.
inline double scaled_twice(double x, std::int32_t n) {
  const std::int32_t half = n / 2;
  return scaled(x, half) * scaled(1, n - half);
}

/// sin(x) / x - 1 and cos(x), by x x of an x up to pi / 4.
inline double sine_factor(double square) {
  return std::fma(
      polynomial(square, {0x1.5db65f9785ebap-33, -0x1.ae5f12cb0d246p-26, 0x1.71de369ace392p-19,
                          -0x1.a01a019db62a1p-13, 0x1.1111111110818p-7, -0x1.5555555555554p-3}),
      square, 0.0);
}
inline double cosine_by_square(double square) {
  return polynomial(
      square, {-0x1.8ff8320fd8164p-37, 0x1.1eea7c1ef8528p-29, -0x1.27e4f8e06e6d9p-22,
               0x1.a01a019ddbce9p-16, -0x1.6c16c16c15d47p-10, 0x1.5555555555551p-5, -0.5, 1.0});
}

}  // namespace doubles

/// e^x: 2^n times a polynomial of x - n ln(2), in two factors where 2^n is out of range.
inline double exp(double x) {
  using namespace doubles;
  const PowerOfTwo power = nearest_power_of_two(x);
  const double of_rest = small_exp(power.rest);
  // The bounds are compared by high words: 709.78 and 745.
  const std::uint32_t magnitude = static_cast<std::uint32_t>(high_word(x)) & 0x7fffffff;
  if (magnitude < 0x4086232b) return scaled(of_rest, power.n);
  if (magnitude >= 0x40874800) {
    if (x != x) return x + x;
    return x < 0 ? 0 : x + std::numeric_limits<double>::infinity();
  }
  return scaled_twice(of_rest, power.n);
}

/// The natural logarithm: that of 1 + f, f from sqrt(1/2) - 1 to sqrt(2) - 1, by way of u = 2 f /
/// (2 + f), and that of the power of 2.
inline double log(double x) {
  using namespace doubles;
  std::int32_t exponent = -1023;
  if (high_word(x) <= 0xfffff) {
    x *= 0x1p54;
    exponent = -1077;
  }
  const std::int32_t high = high_word(x);
  if (static_cast<std::uint32_t>(high - 1) >= 0x7fefffff) {
    if ((high & 0x7fffffff) == 0) return -std::numeric_limits<double>::infinity();
    return std::fma(x, std::numeric_limits<double>::infinity(),
                    std::numeric_limits<double>::infinity());
  }
  exponent += high >> 20;
  double y = std::bit_cast<double>((std::bit_cast<std::uint64_t>(x) & 0x000fffffffffffff) |
                                   0x3ff0000000000000);
  if (high_word(y) >= 0x3ff6a09f) {
    y = y / 2;
    ++exponent;
  }
  const double divisor = y + 1, f = y - 1;
  const double of_divisor = inverse(divisor);
  const double half = f * of_divisor;
  const double u = std::fma(f, of_divisor, half);
  const double square = u * u;
  const double p =
      polynomial(square, {0x1.1380b3ae80f1ep-20, 0x1.0ee258b7a8b04p-18, 0x1.3b2669f02676fp-16,
                          0x1.745cba9ab0956p-14, 0x1.c71c72d1b5154p-12, 0x1.24924923be72dp-9,
                          0x1.999999999a3c4p-7, 0x1.5555555555554p-4});
  const double difference = f - u;
  const double low = of_divisor * std::fma(-u, f, difference + difference);
  const double rest = std::fma(square * p, u, low);
  const auto n = static_cast<double>(exponent);
  const double top = std::fma(n, high_ln2, u);
  const double lost = std::fma(-n, high_ln2, top) - u;
  return top + std::fma(n, low_ln2, rest - lost);
}

/// log(1 + x): near 0 by u = 2 x / (2 + x), else the logarithm of the sum.
inline double log1p(double x) {
  // The bounds, about -0.4 and 2/3, are compared by high words.
  const auto high = std::bit_cast<float>(doubles::high_word(x));
  if (!(high > std::bit_cast<float>(0xbfd99999) && high < std::bit_cast<float>(0x3fe55555)))
    return cuda_math::log(x + 1);
  const double lost = x * (x / (x + 2));
  const double u = x - lost, square = u * u;
  const double p =
      polynomial(square, {0x1.372fb2fbe14b5p-20, 0x1.087ffceb2dc44p-18, 0x1.3b9ff890f468cp-16,
                          0x1.7457efd51baf8p-14, 0x1.c71c8de3ce825p-12, 0x1.249248fa4661fp-9,
                          0x1.99999999d70c4p-7, 0x1.5555555555462p-4});
  return x + std::fma(u, square * p, -lost);
}

struct SineAndCosine {
  double sine = 0, cosine = 0;
};
/// Of x pi, |x| below 2^31: by quarter turns.
inline SineAndCosine sin_cos_pi(double x) {
  const double turns = std::nearbyint(x * 2);
  const double rest = std::fma(-turns, 0.5, x);
  const double angle = std::fma(rest, 0x1.921fb54442d18p+1, rest * 0x1.1a62633145c07p-53);
  const double square = angle * angle;
  SineAndCosine all{std::fma(angle, doubles::sine_factor(square), angle),
                    doubles::cosine_by_square(square)};
  const auto quarters = static_cast<std::int64_t>(turns);
  if ((quarters & 1) != 0) all = {all.cosine, -all.sine};
  if ((quarters & 2) != 0) all = {-all.sine, -all.cosine};
  if (x == std::trunc(x)) all.sine = 0 * x;
  return {all.sine, 0 + all.cosine};
}

/// 1 / sqrt(x): the instruction's steps, with NaNs and numbers out of range as it has them.
inline double rsqrt(double x) {
  return std::bit_cast<double>(mufu::rsqrt_approx_f64(std::bit_cast<std::uint64_t>(x)));
}

}  // namespace guardbit::emulator::cuda_math
