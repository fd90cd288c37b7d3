#include "emulator/operators/pointwise/pointwise_doubles.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

#include "emulator/functions/cuda/cuda_double_trigonometry.hpp"
#include "emulator/functions/rounded_instruction.hpp"
#include "emulator/operators/broadcast.hpp"
#include "emulator/operators/pointwise/modified_bessel.hpp"
#include "formats/support/parallel.hpp"

namespace guardbit::emulator::operators {
namespace {

using P = const DoubleParameters&;

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double pi = std::numbers::pi;

/// A NaN as the GPU gives it; the host's units choose another operand's.
template <class... Operands>
double of_unit(RoundedOperation operation, double result, Operands... operands) {
  if (result == result) return result;
  const std::array<std::uint64_t, sizeof...(Operands)> codes = {
      std::bit_cast<std::uint64_t>(operands)...};
  return std::bit_cast<double>(
      rounded::nan_code({.operation = operation, .format = formats::fp64}, codes));
}

double add(double x, double y) { return of_unit(RoundedOperation::add, x + y, x, y); }
double sub(double x, double y) { return of_unit(RoundedOperation::sub, x - y, x, y); }
double mul(double x, double y) { return of_unit(RoundedOperation::mul, x * y, x, y); }
double div(double x, double y) { return of_unit(RoundedOperation::div, x / y, x, y); }
double root(double x) { return of_unit(RoundedOperation::sqrt, std::sqrt(x), x); }
double fma(double x, double y, double z) {
  return of_unit(RoundedOperation::fma, std::fma(x, y, z), x, y, z);
}
double power(double x) { return of_unit(RoundedOperation::add, cuda_math::exp(x), x, x); }
double logarithm(double x) { return of_unit(RoundedOperation::add, cuda_math::log(x), x, x); }
double of_function(double (*function)(double), double x) {
  return of_unit(RoundedOperation::add, function(x), x, x);
}
/// The same as a row of the table has it.
template <double (*function)(double)>
double of(double x, double, double, P) {
  return of_function(function, x);
}
double length(double x, double y) {
  return of_unit(RoundedOperation::add, cuda_math::hypot(x, y), x, y);
}
double tangent(double x) { return of_function(cuda_math::tanh, x); }
double error(double x) { return of_function(cuda_math::erf, x); }
double logarithm_of_next(double x) { return of_function(cuda_math::log1p, x); }
double power_less_one(double x) { return of_function(cuda_math::expm1, x); }
double truth(bool is_true) { return is_true ? 1 : 0; }

/// Zeros of both signs: the positive one is the greater. A NaN wins.
double greater(double x, double y) {
  if (std::isnan(x)) return x;
  if (std::isnan(y)) return y;
  if (x == y) return std::signbit(x) ? y : x;
  return x > y ? x : y;
}
double lesser(double x, double y) {
  if (std::isnan(x)) return x;
  if (std::isnan(y)) return y;
  if (x == y) return std::signbit(x) ? x : y;
  return x < y ? x : y;
}

double log_add(double x, double y, double (*exponential)(double), double (*sum)(double, double)) {
  if (std::isinf(x) && x == y) return x;
  return sum(greater(x, y), logarithm_of_next(of_function(exponential, -std::abs(sub(x, y)))));
}

/// tanh(log(1 + e^x))
double inner_of_mish(double x) { return tangent(logarithm_of_next(power(x))); }

constexpr double root_of_half = std::numbers::sqrt2 / 2;
constexpr double root_of_two_over_pi = std::numbers::sqrt2 * (2 * std::numbers::inv_sqrtpi) * 0.5;
double inner_of_gelu_tanh(double x) {
  return mul(root_of_two_over_pi, fma(mul(x, mul(x, x)), 0.044715, x));
}

double gelu_backward(double dy, double x) {
  constexpr double factor = (2 * std::numbers::inv_sqrtpi) * root_of_half * 0.5;
  const double density = mul(power(mul(mul(-0.5, x), x)), factor);
  return mul(dy, fma(add(1, error(mul(x, root_of_half))), 0.5, mul(x, density)));
}
double gelu_backward_tanh(double dy, double x) {
  const double t = tangent(inner_of_gelu_tanh(x));
  const double of_inner = mul(fma(mul(x, x), 3 * 0.044715, 1), root_of_two_over_pi);
  const double right = mul(mul(mul(0.5, x), fma(-t, t, 1)), of_inner);
  return mul(dy, fma(add(1, t), 0.5, right));
}
double mish_backward(double dy, double x) {
  const double s = div(1, add(1, power(-x))), t = inner_of_mish(x);
  return mul(dy, fma(mul(x, s), fma(-t, t, 1), t));
}

double logistic(double x) { return div(1, add(1, power(-x))); }
/// PyTorch has it as a number of FP32.
constexpr double sixth = 1.0F / 6;
/// x + 3, kept in 0 to 6.
double hard_gate(double x) { return lesser(greater(add(x, 3), 0), 6); }
double log_sigmoid(double x) { return sub(x >= 0 ? 0 : x, logarithm_of_next(power(-std::abs(x)))); }
double log_sigmoid_backward(double dy, double x) {
  const double z = power(-std::abs(x)), share = div(z, add(1, z));
  return mul(dy, x < 0 ? sub(1, share) : share);
}

/// The recurrence up to 10, then the asymptotic series.
double digamma(double x) {
  if (x == 0) return std::copysign(infinity, -x);
  double result = 0;
  if (x < 0) {
    if (x == std::trunc(x)) return std::numeric_limits<double>::quiet_NaN();
    double whole = 0;
    result = div(-pi, of_function(cuda_math::tan, mul(pi, std::modf(x, &whole))));
    x = sub(1, x);
  }
  while (x < 10) {
    result = sub(result, div(1, x));
    x = add(x, 1);
  }
  constexpr double of_ten = 2.25175258906672110764;
  if (x == 10) return add(result, of_ten);
  double series = 0;
  if (x < 1e17) {
    const double z = div(1, mul(x, x));
    constexpr std::array coefficients = {8.33333333333333333333E-2, -2.10927960927960927961E-2,
                                         7.57575757575757575758E-3, -4.16666666666666666667E-3,
                                         3.96825396825396825397E-3, -8.33333333333333333333E-3,
                                         8.33333333333333333333E-2};
    for (const double coefficient : coefficients) series = std::fma(series, z, coefficient);
    series = mul(z, series);
  }
  return add(sub(sub(logarithm(x), div(0.5, x)), series), result);
}

/// polygamma of order 1: six steps up, then the asymptotic series; reflected below 0.5.
double trigamma(double x) {
  double result = 0;
  const bool is_reflected = x < 0.5;
  if (is_reflected) {
    const double sine = of_function(cuda_math::sin, mul(pi, x));
    result = sub(result, div(pi * pi, mul(sine, sine)));
    x = sub(1, x);
  }
  for (int i = 0; i < 6; ++i) {
    result = add(result, div(1, mul(x, x)));
    x = add(x, 1);
  }
  const double z = div(1, mul(x, x));
  const double series = fma(-z, fma(-z, 1.0 / 42, 1.0 / 30), 1.0 / 6);
  result = add(result, div(fma(z, series, add(1, div(1, mul(2, x)))), x));
  return is_reflected ? -result : result;
}

double lerp(double x, double y, double weight) {
  const double way = sub(y, x);
  return std::abs(weight) < 0.5 ? fma(weight, way, x) : fma(-way, sub(1, weight), y);
}

double python_remainder(double x, double y) {
  const double rest = std::fmod(x, y);
  return rest != 0 && (y < 0) != (rest < 0) ? add(rest, y) : rest;
}

double floor_quotient(double x, double y, double whole, double quotient) {
  const double rest = std::fmod(x, y);
  if (y == 0) return quotient;
  if (rest != 0 && (y < 0) != (rest < 0)) whole = sub(whole, 1);
  if (whole == 0) return std::copysign(0.0, quotient);
  const double floor = std::floor(whole);
  return sub(whole, floor) > 0.5 ? floor + 1 : floor;
}

constexpr std::array table =
    {
        // One operand.
        DoubleOperator{"abs", 1, "|x|", [](double x, double, double, P) { return std::abs(x); }},
        DoubleOperator{"neg", 1, "-x", [](double x, double, double, P) { return -x; }},
        DoubleOperator{"sign", 1, "1, 0 or -1",
                       [](double x, double, double, P) { return truth(x > 0) - truth(x < 0); }},
        DoubleOperator{"floor", 1, "the integer at or below x",
                       [](double x, double, double, P) { return std::floor(x); }},
        DoubleOperator{"ceil", 1, "the integer at or above x",
                       [](double x, double, double, P) { return std::ceil(x); }},
        DoubleOperator{"round", 1, "the nearest integer, ties to even",
                       [](double x, double, double, P) { return std::nearbyint(x); }},
        DoubleOperator{"trunc", 1, "x cut to an integer",
                       [](double x, double, double, P) { return std::trunc(x); }},
        DoubleOperator{"frac", 1, "x - trunc(x)",
                       [](double x, double, double, P) { return sub(x, std::trunc(x)); }},
        DoubleOperator{"sqrt", 1, "IEEE square root",
                       [](double x, double, double, P) { return root(x); }},
        DoubleOperator{"reciprocal", 1, "1 / x",
                       [](double x, double, double, P) { return div(1, x); }},
        DoubleOperator{"relu", 1, "the greater of x and 0; a NaN stays",
                       [](double x, double, double, P) { return std::isnan(x) || x > 0 ? x : 0; }},
        DoubleOperator{"deg2rad", 1, "x pi / 180, the factor rounded once",
                       [](double x, double, double, P) { return mul(x, pi / 180); }},
        DoubleOperator{"rad2deg", 1, "x 180 / pi, the factor rounded once",
                       [](double x, double, double, P) { return mul(x, 180 / pi); }},
        DoubleOperator{"pow_2", 1, "x x", [](double x, double, double, P) { return mul(x, x); }},
        DoubleOperator{"pow_3", 1, "(x x) x",
                       [](double x, double, double, P) { return mul(mul(x, x), x); }},
        DoubleOperator{"pow_minus_2", 1, "1 / (x x)",
                       [](double x, double, double, P) { return div(1, mul(x, x)); }},
        DoubleOperator{"exp", 1, "exp(x)", [](double x, double, double, P) { return power(x); }},
        DoubleOperator{"log", 1, "log(x)",
                       [](double x, double, double, P) { return logarithm(x); }},
        DoubleOperator{"sigmoid", 1, "1 / (1 + exp(-x))",
                       [](double x, double, double, P) { return div(1, add(1, power(-x))); }},
        DoubleOperator{
            "hardswish", 1, "(x min(max(x + 3, 0), 6)) (1 / 6)",
            [](double x, double, double, P) { return mul(mul(x, hard_gate(x)), sixth); }},
        DoubleOperator{"hardsigmoid", 1, "min(max(x + 3, 0), 6) (1 / 6)",
                       [](double x, double, double, P) { return mul(hard_gate(x), sixth); }},
        DoubleOperator{"log_sigmoid", 1, "min(0, x) - log1p(exp(-|x|))",
                       [](double x, double, double, P) { return log_sigmoid(x); }},
        DoubleOperator{"special_entr", 1, "(-x) log(x) above 0, 0 where x is 0, else -infinity",
                       [](double x, double, double, P) {
                         if (std::isnan(x)) return x;
                         if (x > 0) return mul(-x, logarithm(x));
                         return x == 0 ? 0 : -infinity;
                       }},
        DoubleOperator{"logit", 1, "log(z / (1 - z)), z is x kept in p to q",
                       [](double x, double, double, P p) {
                         const double z = x < p[0] ? p[0] : x > p[1] ? p[1] : x;
                         return logarithm(div(z, sub(1, z)));
                       }},
        DoubleOperator{"silu", 1, "x / (1 + exp(-x))",
                       [](double x, double, double, P) { return div(x, add(1, power(-x))); }},
        DoubleOperator{"exp2", 1, "exp2(x)", of<cuda_math::exp2>},
        DoubleOperator{"expm1", 1,
                       "expm1(x)", [](double x, double, double, P) { return power_less_one(x); }},
        DoubleOperator{
            "log1p", 1, "log1p(x)",
            [](double x, double, double, P) { return logarithm_of_next(x); }},
        DoubleOperator{"rsqrt", 1, "rsqrt(x)", of<cuda_math::rsqrt>},
        DoubleOperator{"tanh", 1, "tanh(x)",
                       [](double x, double, double, P) { return tangent(x); }},
        DoubleOperator{"sinh", 1, "sinh(x)", of<cuda_math::sinh>},
        DoubleOperator{"cosh", 1, "cosh(x)", of<cuda_math::cosh>},
        DoubleOperator{"acosh", 1, "acosh(x)", of<cuda_math::acosh>},
        DoubleOperator{"acos", 1, "acos(x)", of<cuda_math::acos>},
        DoubleOperator{"atan", 1, "atan(x)", of<cuda_math::atan>},
        DoubleOperator{"erf", 1, "erf(x)", [](double x, double, double, P) { return error(x); }},
        DoubleOperator{"sin", 1, "sin(x)", of<cuda_math::sin>},
        DoubleOperator{"cos", 1, "cos(x)", of<cuda_math::cos>},
        DoubleOperator{"tan", 1, "tan(x)", of<cuda_math::tan>},
        DoubleOperator{"log2", 1, "log2(x)", of<cuda_math::log2>},
        DoubleOperator{"log10", 1, "log10(x)", of<cuda_math::log10>},
        DoubleOperator{"asin", 1, "asin(x)", of<cuda_math::asin>},
        DoubleOperator{"asinh", 1, "asinh(x)", of<cuda_math::asinh>},
        DoubleOperator{"atanh", 1, "atanh(x)", of<cuda_math::atanh>},
        DoubleOperator{"erfc", 1, "erfc(x)", of<cuda_math::erfc>},
        DoubleOperator{"sinc", 1, "1 where x is 0, else sin(x pi) / (x pi)",
                       [](double x, double, double, P) {
                         const double angle = mul(x, pi);
                         return x == 0 ? 1 : div(of_function(cuda_math::sin, angle), angle);
                       }},
        DoubleOperator{"digamma", 1, "as of FP32, in FP64",
                       [](double x, double, double, P) { return digamma(x); }},
        DoubleOperator{"trigamma", 1, "as of FP32, in FP64",
                       [](double x, double, double, P) { return trigamma(x); }},
        DoubleOperator{
            "i0", 1, "I0(x)",
            [](double x, double, double,
               P) { return of_unit(RoundedOperation::add, bessel::of_order_0(x, false), x, x); }},
        DoubleOperator{
            "special_i0e", 1, "I0(x) exp(-|x|)",
            [](double x, double, double,
               P) { return of_unit(RoundedOperation::add, bessel::of_order_0(x, true), x, x); }},
        DoubleOperator{
            "special_i1", 1, "I1(x)",
            [](double x, double, double,
               P) { return of_unit(RoundedOperation::add, bessel::of_order_1(x, false), x, x); }},
        DoubleOperator{
            "special_i1e", 1, "I1(x) exp(-|x|)",
            [](double x, double, double,
               P) { return of_unit(RoundedOperation::add, bessel::of_order_1(x, true), x, x); }},
        DoubleOperator{"angle", 1, "pi below 0, else 0; a NaN stays",
                       [](double x, double, double, P) {
                         return std::isnan(x) ? x : x < 0 ? pi : 0;
                       }},
        DoubleOperator{"nan_to_num", 1, "p for a NaN, q and r for the infinities, else x",
                       [](double x, double, double, P p) {
                         if (std::isnan(x)) return p[0];
                         return x == infinity ? p[1] : x == -infinity ? p[2] : x;
                       }},
        DoubleOperator{
            "round_decimals", 1, "the nearest integer to x p, divided by p",
            [](double x, double, double, P p) { return div(std::nearbyint(mul(x, p[0])), p[0]); }},
        DoubleOperator{"gelu", 1, "(x 0.5) (1 + erf(x sqrt(0.5)))",
                       [](double x, double, double, P) {
                         return mul(mul(x, 0.5), add(1, error(mul(x, root_of_half))));
                       }},
        DoubleOperator{"gelu_tanh", 1, "(0.5 x) (1 + tanh(sqrt(2 / pi) fma(x (x x), 0.044715, x)))",
                       [](double x, double, double, P) {
                         return mul(mul(0.5, x), add(1, tangent(inner_of_gelu_tanh(x))));
                       }},
        DoubleOperator{"softplus", 1, "x p > q: x, else log1p(exp(x p)) / p",
                       [](double x, double, double, P p) {
                         const double scaled = mul(x, p[0]);
                         return scaled > p[1] ? x : div(logarithm_of_next(power(scaled)), p[0]);
                       }},
        DoubleOperator{"mish", 1, "x tanh(log1p(exp(x)))",
                       [](double x, double, double, P) { return mul(x, inner_of_mish(x)); }},
        DoubleOperator{"elu", 1, "x > 0: x q, else expm1(x r) p",
                       [](double x, double, double, P p) {
                         return x > 0 ? mul(x, p[1]) : mul(power_less_one(mul(x, p[2])), p[0]);
                       }},
        DoubleOperator{
            "hardshrink", 1, "-p <= x <= p: 0, else x",
            [](double x, double, double, P p) { return x >= -p[0] && x <= p[0] ? 0 : x; }},
        DoubleOperator{"softshrink", 1, "x > p: x - p; x < -p: x + p; else 0",
                       [](double x, double, double, P p) {
                         if (std::isnan(x)) return x;
                         return x > p[0] ? sub(x, p[0]) : x < -p[0] ? add(x, p[0]) : 0;
                       }},
        DoubleOperator{"div_by_number", 1, "x p, p is 1 / y rounded once",
                       [](double x, double, double, P p) { return mul(x, p[0]); }},
        DoubleOperator{"div_by_number_trunc", 1, "x p cut to an integer, p is 1 / y",
                       [](double x, double, double, P p) { return std::trunc(mul(x, p[0])); }},
        DoubleOperator{"div_by_number_floor", 1, "(x - fmod(x, q)) p, corrected, p is 1 / q",
                       [](double x, double, double, P p) {
                         const double y = p[1], inverse = p[0];
                         return floor_quotient(x, y, mul(sub(x, std::fmod(x, y)), inverse),
                                               mul(x, inverse));
                       }},
        DoubleOperator{"clamp", 1, "max(x, p), then min with q; a NaN stays",
                       [](double x, double, double, P p) {
                         return std::isnan(x) ? x : lesser(greater(x, p[0]), p[1]);
                       }},
        DoubleOperator{"threshold", 1, "x above p, else q",
                       [](double x, double, double, P p) { return x <= p[0] ? p[1] : x; }},
        DoubleOperator{"leaky_relu", 1, "x above 0, else x p",
                       [](double x, double, double, P p) { return x > 0 ? x : mul(x, p[0]); }},
        // Two.
        DoubleOperator{"add", 2, "fma(y, p, x), p is alpha",
                       [](double x, double y, double, P p) { return fma(y, p[0], x); }},
        DoubleOperator{"sub", 2, "fma(y, -p, x), p is alpha",
                       [](double x, double y, double, P p) { return fma(y, -p[0], x); }},
        DoubleOperator{"mul", 2, "x y", [](double x, double y, double, P) { return mul(x, y); }},
        DoubleOperator{"div", 2, "x / y", [](double x, double y, double, P) { return div(x, y); }},
        DoubleOperator{"div_trunc", 2, "x / y cut to an integer",
                       [](double x, double y, double, P) { return std::trunc(div(x, y)); }},
        DoubleOperator{"div_floor", 2, "(x - fmod(x, y)) / y, corrected and rounded to an integer",
                       [](double x, double y, double, P) {
                         return floor_quotient(x, y, div(sub(x, std::fmod(x, y)), y), div(x, y));
                       }},
        DoubleOperator{"fmod", 2, "fmod(x, y)",
                       [](double x, double y, double, P) { return std::fmod(x, y); }},
        DoubleOperator{"remainder", 2, "fmod(x, y), y added where the signs differ",
                       [](double x, double y, double, P) { return python_remainder(x, y); }},
        DoubleOperator{"copysign", 2, "|x| with the sign of y",
                       [](double x, double y, double, P) { return std::copysign(x, y); }},
        DoubleOperator{"maximum", 2, "the greater; a NaN wins",
                       [](double x, double y, double, P) { return greater(x, y); }},
        DoubleOperator{"minimum", 2, "the lesser; a NaN wins",
                       [](double x, double y, double, P) { return lesser(x, y); }},
        DoubleOperator{"fmax", 2, "the greater; a NaN loses",
                       [](double x, double y, double,
                          P) { return std::isnan(x)   ? y
                                      : std::isnan(y) ? x
                                                      : greater(x, y); }},
        DoubleOperator{"fmin", 2, "the lesser; a NaN loses",
                       [](double x, double y, double,
                          P) { return std::isnan(x)   ? y
                                      : std::isnan(y) ? x
                                                      : lesser(x, y); }},
        DoubleOperator{"heaviside", 2, "y where x is 0, else 1 above it and 0 below",
                       [](double x, double y, double, P) { return x == 0 ? y : truth(x > 0); }},
        DoubleOperator{
            "pow",
            2, "pow(x, y)",
            [](double x, double y, double,
               P) { return of_unit(RoundedOperation::add, cuda_math::pow(x, y), x, y); }},
        DoubleOperator{
            "atan2", 2, "atan2(x, y)",
            [](double x, double y, double,
               P) { return of_unit(RoundedOperation::add, cuda_math::atan2(x, y), x, y); }},
        DoubleOperator{"hypot", 2,
                       "hypot(x, y)", [](double x, double y, double, P) { return length(x, y); }},
        DoubleOperator{
            "logaddexp", 2, "max(x, y) + log1p(exp(-|x - y|))",
            [](double x, double y, double, P) { return log_add(x, y, cuda_math::exp, add); }},
        DoubleOperator{"logaddexp2", 2, "fma(log1p(exp2(-|x - y|)), 1 / ln(2), max(x, y))",
                       [](double x, double y, double, P) {
                         return log_add(x, y, cuda_math::exp2, [](double most, double logarithm) {
                           return fma(logarithm, 1 / std::numbers::ln2, most);
                         });
                       }},
        DoubleOperator{"xlogy", 2, "0 where x is 0, else x log(y)",
                       [](double x, double y, double, P) {
                         if (std::isnan(y)) return std::numeric_limits<double>::quiet_NaN();
                         return x == 0 ? 0 : mul(x, logarithm(y));
                       }},
        DoubleOperator{"special_xlog1py", 2, "0 where x is 0, else x log1p(y)",
                       [](double x, double y, double, P) {
                         if (std::isnan(y)) return std::numeric_limits<double>::quiet_NaN();
                         return x == 0 ? 0 : mul(x, logarithm_of_next(y));
                       }},
        DoubleOperator{"tanh_backward", 2, "x fma(-y, y, 1)",
                       [](double x, double y, double, P) { return mul(x, fma(-y, y, 1)); }},
        DoubleOperator{"silu_backward", 2, "s = 1 / (1 + exp(-y)); (x s) fma(y, 1 - s, 1)",
                       [](double dy, double x, double, P) {
                         const double s = logistic(x);
                         return mul(mul(dy, s), fma(x, sub(1, s), 1));
                       }},
        DoubleOperator{"hardswish_backward", 2, "y <= -3: 0; y < 3: x (y / 3 + 0.5); else x",
                       [](double dy, double x, double, P) {
                         if (x <= -3) return 0.0;
                         return x < 3 ? mul(dy, add(div(x, 3), 0.5)) : dy;
                       }},
        DoubleOperator{
            "hardsigmoid_backward", 2, "-3 < y < 3: x (1 / 6), else 0",
            [](double dy, double x, double, P) { return x > -3 && x < 3 ? mul(dy, sixth) : 0; }},
        DoubleOperator{"log_sigmoid_backward", 2,
                       "z = exp(-|y|); x (1 - z / (1 + z)) below 0, else x (z / (1 + z))",
                       [](double dy, double x, double, P) { return log_sigmoid_backward(dy, x); }},
        DoubleOperator{"logit_backward", 2, "x / (y (1 - y)) where y is in p to q, else r",
                       [](double dy, double x, double, P p) {
                         return x < p[0] || x > p[1] ? p[2] : div(dy, mul(x, sub(1, x)));
                       }},
        DoubleOperator{"glu", 2, "x (1 / (1 + exp(-y)))",
                       [](double x, double y, double, P) { return mul(x, logistic(y)); }},
        DoubleOperator{"glu_backward", 2, "(1 / (1 + exp(-y))) x",
                       [](double dy, double gate, double, P) { return mul(logistic(gate), dy); }},
        DoubleOperator{"gelu_backward", 2,
                       "x fma(1 + erf(y sqrt(0.5)), 0.5, y exp((-0.5 y) y) / sqrt(2 pi))",
                       [](double x, double y, double, P) { return gelu_backward(x, y); }},
        DoubleOperator{
            "gelu_backward_tanh", 2,
            "t = tanh(...); x fma(1 + t, 0.5, ((0.5 y) fma(-t, t, 1)) (fma(y y, 0.134145, "
            "1) sqrt(2 / pi)))",
            [](double x, double y, double, P) { return gelu_backward_tanh(x, y); }},
        DoubleOperator{
            "mish_backward", 2,
            "s = 1 / (1 + exp(-y)), t = tanh(log1p(exp(y))); x fma(y s, fma(-t, t, 1), t)",
            [](double x, double y, double, P) { return mish_backward(x, y); }},
        DoubleOperator{"softplus_backward", 2, "z = exp(y p); y p > q: x, else (x z) / (z + 1)",
                       [](double x, double y, double, P p) {
                         const double scaled = mul(y, p[0]), z = power(scaled);
                         return scaled > p[1] ? x : div(mul(x, z), add(z, 1));
                       }},
        DoubleOperator{"elu_backward", 2, "y <= 0: ((x r) p) exp(y r), else x q",
                       [](double x, double y, double, P p) {
                         return y <= 0 ? mul(mul(mul(x, p[2]), p[0]), power(mul(y, p[2])))
                                       : mul(x, p[1]);
                       }},
        DoubleOperator{
            "hardshrink_backward", 2, "-p <= y <= p: 0, else x",
            [](double x, double y, double, P p) { return y >= -p[0] && y <= p[0] ? 0 : x; }},
        DoubleOperator{"lerp_by_number", 2, "as lerp, z is p",
                       [](double x, double y, double, P p) { return lerp(x, y, p[0]); }},
        DoubleOperator{"masked_fill", 2, "p where y is true, else x",
                       [](double x, double y, double, P p) { return y == 0 ? x : p[0]; }},
        DoubleOperator{"sigmoid_backward", 2, "(x (1 - y)) y",
                       [](double x, double y, double, P) { return mul(mul(x, sub(1, y)), y); }},
        DoubleOperator{"threshold_backward", 2, "x where y is above p, else 0",
                       [](double x, double y, double, P p) { return y <= p[0] ? 0 : x; }},
        DoubleOperator{"leaky_relu_backward", 2, "x where y is above 0, else x p",
                       [](double x, double y, double, P p) { return y > 0 ? x : mul(x, p[0]); }},
        DoubleOperator{
            "hardtanh_backward", 2, "x where y is between p and q, else 0",
            [](double x, double y, double, P p) { return y <= p[0] || y >= p[1] ? 0 : x; }},
        // Three.
        DoubleOperator{"lerp", 3, "|z| < 0.5: fma(z, y - x, x), else fma(-(y - x), 1 - z, y)",
                       [](double x, double y, double z, P) { return lerp(x, y, z); }},
        DoubleOperator{"glu_backward_gate", 3, "s = 1 / (1 + exp(-z)); (((1 - s) s) x) y",
                       [](double dy, double x, double gate, P) {
                         const double s = logistic(gate);
                         return mul(mul(mul(sub(1, s), s), dy), x);
                       }},
        DoubleOperator{"addcmul", 3, "fma(p, y z, x); p = 1: fma(y, z, x)",
                       [](double x, double y, double z, P p) {
                         return p[0] == 1 ? fma(y, z, x) : fma(p[0], mul(y, z), x);
                       }},
        DoubleOperator{"addcdiv", 3, "fma(p, y / z, x)",
                       [](double x, double y, double z, P p) { return fma(p[0], div(y, z), x); }},
        DoubleOperator{"clamp_by_tensors", 3, "max(x, y), then min with z; a NaN stays",
                       [](double x, double y, double z, P) { return lesser(greater(x, y), z); }},
        DoubleOperator{"where", 3, "y where x is true, else z",
                       [](double x, double y, double z, P) { return x == 0 ? z : y; }},
        // Comparisons.
        DoubleOperator{"isnan", 1, "is x a NaN?",
                       [](double x, double, double, P) { return truth(std::isnan(x)); }, true},
        DoubleOperator{"isinf", 1, "is x infinite?",
                       [](double x, double, double, P) { return truth(std::abs(x) == infinity); },
                       true},
        DoubleOperator{"isfinite", 1, "is x finite?",
                       [](double x, double, double, P) { return truth(std::isfinite(x)); }, true},
        DoubleOperator{"signbit", 1, "the sign of x",
                       [](double x, double, double, P) { return truth(std::signbit(x)); }, true},
        DoubleOperator{"logical_not", 1, "x = 0",
                       [](double x, double, double, P) { return truth(x == 0); }, true},
        DoubleOperator{"eq", 2, "x = y",
                       [](double x, double y, double, P) { return truth(x == y); }, true},
        DoubleOperator{"ne", 2, "x /= y",
                       [](double x, double y, double, P) { return truth(x != y); }, true},
        DoubleOperator{"lt", 2, "x < y", [](double x, double y, double, P) { return truth(x < y); },
                       true},
        DoubleOperator{"le", 2, "x <= y",
                       [](double x, double y, double, P) { return truth(x <= y); }, true},
        DoubleOperator{"gt", 2, "x > y", [](double x, double y, double, P) { return truth(x > y); },
                       true},
        DoubleOperator{"ge", 2, "x >= y",
                       [](double x, double y, double, P) { return truth(x >= y); }, true},
        DoubleOperator{"logical_and", 2, "x and y",
                       [](double x, double y, double, P) { return truth(x != 0 && y != 0); }, true},
        DoubleOperator{"logical_or", 2, "x or y",
                       [](double x, double y, double, P) { return truth(x != 0 || y != 0); }, true},
        DoubleOperator{"logical_xor", 2, "either x or y",
                       [](double x, double y, double, P) { return truth((x != 0) != (y != 0)); },
                       true},
};

}  // namespace

std::span<const DoubleOperator> double_operators() { return table; }

const DoubleOperator* find_double_operator(std::string_view name) {
  const auto found = std::ranges::find(table, name, &DoubleOperator::name);
  return found == table.end() ? nullptr : &*found;
}

Tensor run_doubles(const DoubleOperator& op, std::span<const Tensor* const> operands,
                   const DoubleParameters& parameters, const formats::Format& type, int threads) {
  const auto shape = broadcast_shape(operands);
  assert(shape && operands.size() == static_cast<std::size_t>(op.operands));
  assert(type == formats::fp64 || type == formats::b1);
  std::vector<std::vector<double>> numbers;
  for (const Tensor* operand : operands) numbers.push_back(doubles_of(*operand));
  Tensor result = broadcast_result(operands, *shape, type);
  const auto bytes = writable_bytes(result);
  formats::parallel_for(static_cast<std::size_t>(result.count()), 4096, threads,
                        [&](std::size_t begin, std::size_t end) {
                          std::vector<BroadcastPlaces> places;
                          for (const Tensor* operand : operands)
                            places.emplace_back(operand->shape, *shape,
                                                static_cast<std::int64_t>(begin));
                          for (std::size_t i = begin; i < end; ++i) {
                            std::array<double, 3> x{};
                            for (std::size_t k = 0; k < numbers.size(); ++k)
                              x[k] = numbers[k][static_cast<std::size_t>(places[k].next())];
                            const double number = op.run(x[0], x[1], x[2], parameters);
                            if (type == formats::b1) {
                              bytes[i] = static_cast<std::byte>(number != 0);
                            } else {
                              reinterpret_cast<double*>(bytes.data())[i] = number;
                            }
                          }
                        });
  return result;
}

}  // namespace guardbit::emulator::operators
