#include <cmath>
#include <limits>
#include <numbers>

#include "emulator/functions/cuda/cuda_double_trigonometry.hpp"
#include "emulator/functions/cuda/cuda_error_functions.hpp"
#include "emulator/functions/cuda/cuda_exponentials.hpp"
#include "emulator/functions/cuda/cuda_gamma.hpp"
#include "emulator/functions/cuda/cuda_hyperbolics.hpp"
#include "emulator/functions/cuda/cuda_logarithms.hpp"
#include "emulator/functions/cuda/cuda_powers.hpp"
#include "emulator/functions/cuda/cuda_trigonometry.hpp"
#include "emulator/operators/pointwise/modified_bessel.hpp"
#include "emulator/operators/pointwise/pointwise_program.hpp"

namespace guardbit::emulator::operators {
namespace {

using Number = HostNumber;
using P = const Parameters&;

constexpr float infinity = std::numeric_limits<float>::infinity();

bool is_nan(Number x) { return x.number() != x.number(); }

/// What a kernel that stores each step in the result's type makes of it.
Number stored(P p, Number x) { return rounded_to(p.type, x.number()); }

/// The recurrence up to 10, then the asymptotic series; the reflection is in double precision.
Number digamma(Number x, P) {
  if (x == 0) return copysign(Number(infinity), -x);
  Number result = 0;
  if (x < 0) {
    if (x == trunc(x)) return std::numeric_limits<float>::quiet_NaN();
    double whole = 0;
    const double fraction = std::modf(double{x.number()}, &whole);
    result = static_cast<float>(-std::numbers::pi / cuda_math::tan(std::numbers::pi * fraction));
    x = 1 - x;
  }
  while (x < 10) {
    result = result - 1 / x;
    x = x + 1;
  }
  if (x == 10) return result + 0x1.20396ep+1F;
  Number series = 0;
  if (x < 1e17F) {
    const Number z = 1 / (x * x);
    const Number sum = cuda_math::polynomial(
        z, {8.33333333333333333333E-2F, -2.10927960927960927961E-2F, 7.57575757575757575758E-3F,
            -4.16666666666666666667E-3F, 3.96825396825396825397E-3F, -8.33333333333333333333E-3F,
            8.33333333333333333333E-2F});
    series = z * sum;
  }
  return ((cuda_math::logf(x) - 0.5F / x) - series) + result;
}

/// polygamma of order 1: six steps up, then the asymptotic series; reflected below 0.5.
Number trigamma(Number x, P) {
  constexpr auto pi = std::numbers::pi_v<float>;
  Number result = 0;
  const bool is_reflected = x < 0.5F;
  if (is_reflected) {
    const Number sine = cuda_math::sinf(pi * x);
    result = result - Number(pi * pi) / (sine * sine);
    x = 1 - x;
  }
  for (int i = 0; i < 6; ++i) {
    result = result + 1 / (x * x);
    x = x + 1;
  }
  const Number z = 1 / (x * x);
  const Number series = fma(-z, fma(-z, Number(1.0F / 42), Number(1.0F / 30)), Number(1.0F / 6));
  result = result + fma(z, series, 1 + 1 / (2 * x)) / x;
  return is_reflected ? -result : result;
}

Number floor_of(Number x) { return std::floor(x.number()); }

const std::array table = {
    pointwise("abs", "|x|", [](Number x, P) { return abs(x); }),
    pointwise("neg", "-x", [](Number x, P) { return -x; }),
    pointwise("sign", "1, 0 or -1",
              [](Number x, P) { return (x > 0 ? 1.0F : 0.0F) - (x < 0 ? 1.0F : 0.0F); }),
    pointwise("floor", "the integer at or below x", [](Number x, P) { return floor_of(x); }),
    pointwise("ceil", "the integer at or above x", [](Number x, P) { return -floor_of(-x); }),
    pointwise("round", "the nearest integer, ties to even", [](Number x, P) { return rint(x); }),
    pointwise("trunc", "x cut to an integer", [](Number x, P) { return trunc(x); }),
    pointwise("frac", "x - trunc(x)", [](Number x, P) { return x - trunc(x); }),
    pointwise("sqrt", "IEEE square root", [](Number x, P) { return square_root(x); }),
    pointwise("rsqrt", "rsqrtf(x)", [](Number x, P) { return cuda_math::rsqrtf(x); }),
    pointwise("reciprocal", "1 / x", [](Number x, P) { return 1 / x; }),
    pointwise("exp", "expf(x)", [](Number x, P) { return cuda_math::expf(x); }),
    pointwise("exp2", "exp2f(x)", [](Number x, P) { return cuda_math::exp2f(x); }),
    pointwise("expm1", "expm1f(x)", [](Number x, P) { return cuda_math::expm1f(x); }),
    pointwise("log", "logf(x)", [](Number x, P) { return cuda_math::logf(x); }),
    pointwise("log2", "log2f(x)", [](Number x, P) { return cuda_math::log2f(x); }),
    pointwise("log10", "log10f(x)", [](Number x, P) { return cuda_math::log10f(x); }),
    pointwise("log1p", "log1pf(x)", [](Number x, P) { return cuda_math::log1pf(x); }),
    pointwise("sin", "sinf(x)", [](Number x, P) { return cuda_math::sinf(x); }),
    pointwise("cos", "cosf(x)", [](Number x, P) { return cuda_math::cosf(x); }),
    pointwise("tan", "tanf(x)", [](Number x, P) { return cuda_math::tanf(x); }),
    pointwise("asin", "asinf(x)", [](Number x, P) { return cuda_math::asinf(x); }),
    pointwise("acos", "acosf(x)", [](Number x, P) { return cuda_math::acosf(x); }),
    pointwise("atan", "atanf(x)", [](Number x, P) { return cuda_math::atanf(x); }),
    pointwise("sinh", "sinhf(x)", [](Number x, P) { return cuda_math::sinhf(x); }),
    pointwise("cosh", "coshf(x)", [](Number x, P) { return cuda_math::coshf(x); }),
    pointwise("tanh", "tanhf(x)", [](Number x, P) { return cuda_math::tanhf(x); }),
    pointwise("asinh", "asinhf(x)", [](Number x, P) { return cuda_math::asinhf(x); }),
    pointwise("acosh", "acoshf(x)", [](Number x, P) { return cuda_math::acoshf(x); }),
    pointwise("atanh", "atanhf(x)", [](Number x, P) { return cuda_math::atanhf(x); }),
    pointwise("erf", "erff(x)", [](Number x, P) { return cuda_math::erff(x); }),
    pointwise("erfc", "erfcf(x)", [](Number x, P) { return cuda_math::erfcf(x); }),
    pointwise("erfinv", "erfinvf(x)", [](Number x, P) { return cuda_math::erfinvf(x); }),
    pointwise("lgamma", "lgammaf(x)", [](Number x, P) { return cuda_math::lgammaf(x); }),
    pointwise(
        "digamma",
        "reflected below 0 in FP64; x + 1 until 10; logf(x) - 0.5 / x - z poly(z), z = 1 / (x x)",
        [](Number x, P p) { return digamma(x, p); }),
    pointwise("trigamma",
              "reflected below 0.5; 6 times x + 1; (1 + 1 / (2 x) + z poly(z)) / x, z = 1 / (x x)",
              [](Number x, P p) { return trigamma(x, p); }),
    pointwise("i0", "I0(x)", [](Number x, P) { return bessel::of_order_0(x, false); }),
    pointwise("special_i0e", "I0(x) exp(-|x|)",
              [](Number x, P) { return bessel::of_order_0(x, true); }),
    pointwise("special_i1", "I1(x)", [](Number x, P) { return bessel::of_order_1(x, false); }),
    pointwise("special_i1e", "I1(x) exp(-|x|)",
              [](Number x, P) { return bessel::of_order_1(x, true); }),
    pointwise("nan_to_num", "p for a NaN, q and r for the infinities, else x",
              [](Number x, P p) -> Number {
                if (is_nan(x)) return p.numbers[0];
                if (x == infinity) return p.numbers[1];
                return x == -infinity ? Number(p.numbers[2]) : x;
              }),
    pointwise("round_decimals", "the nearest integer to x p, divided by p",
              [](Number x, P p) { return rint(x * p.numbers[0]) / p.numbers[0]; }),
    pointwise("deg2rad", "x pi / 180, the factor rounded once",
              [](Number x, P) { return x * 0x1.1df46ap-6F; }),
    pointwise("rad2deg", "x 180 / pi, the factor rounded once",
              [](Number x, P) { return x * 0x1.ca5dc2p+5F; }),
    pointwise("sinc", "1 where x is 0, else sinf(x pi) / (x pi)",
              [](Number x, P) -> Number {
                const Number angle = x * std::numbers::pi_v<float>;
                return x == 0 ? Number(1) : cuda_math::sinf(angle) / angle;
              }),
    choosing("angle", "pi below 0, else 0; a NaN stays",
             [](Number x, P) -> Number {
               return is_nan(x) ? x : x < 0 ? Number(std::numbers::pi_v<float>) : Number(0);
             }),
    choosing_in_fp32("special_entr", "(-x) logf(x) above 0, 0 where x is 0, else -infinity",
                     [](Number x, P) -> Number {
                       if (is_nan(x)) return x;
                       if (x > 0) return computed_number(-x * cuda_math::logf(x));
                       return x == 0 ? Number(0) : Number(-infinity);
                     }),
    pointwise("logit", "logf(z / (1 - z)), z is x kept in p to q",
              [](Number x, P p) {
                const Number z = x < p.numbers[0]   ? Number(p.numbers[0])
                                 : x > p.numbers[1] ? Number(p.numbers[1])
                                                    : x;
                return cuda_math::logf(z / (1 - z));
              }),
    pointwise("pow_2", "x x", [](Number x, P) { return x * x; }),
    pointwise("pow_3", "(x x) x, each product stored in the result's type",
              [](Number x, P p) { return stored(p, x * x) * x; }),
    pointwise("pow_minus_2", "1 / (x x), the product stored in the result's type",
              [](Number x, P p) { return 1 / stored(p, x * x); }),
    comparing("isnan", "x is a NaN", [](Number x, P) { return is_nan(x) ? 1.0F : 0.0F; }),
    comparing("isinf", "x is an infinity",
              [](Number x, P) { return abs(x) == infinity ? 1.0F : 0.0F; }),
    comparing("isfinite", "x is neither",
              [](Number x, P) { return abs(x) < infinity ? 1.0F : 0.0F; }),
    comparing("signbit", "the sign of x",
              [](Number x, P) { return std::signbit(x.number()) ? 1.0F : 0.0F; }),
    comparing("logical_not", "x = 0", [](Number x, P) { return x == 0 ? 1.0F : 0.0F; }),
};

}  // namespace

std::span<const PointwiseOperator> unary_operators() { return table; }

}  // namespace guardbit::emulator::operators
