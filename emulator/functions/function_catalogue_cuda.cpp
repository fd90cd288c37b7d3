#include <cmath>
#include <limits>
#include <numbers>

#include "emulator/functions/cuda/cuda_error_functions.hpp"
#include "emulator/functions/cuda/cuda_exponentials.hpp"
#include "emulator/functions/cuda/cuda_gamma.hpp"
#include "emulator/functions/cuda/cuda_hyperbolics.hpp"
#include "emulator/functions/cuda/cuda_logarithms.hpp"
#include "emulator/functions/cuda/cuda_powers.hpp"
#include "emulator/functions/cuda/cuda_trigonometry.hpp"
#include "emulator/functions/function_catalogue.hpp"
#include "emulator/functions/function_program.hpp"
#include "emulator/functions/unit/quotients.hpp"

namespace guardbit::emulator {

namespace {

// The functions themselves, in doubles.
template <double (*function)(double)>
double in_doubles(double x, double /*y*/) {
  return function(x);
}
double exp10_in_doubles(double x) { return std::pow(10, x); }
double root_reciprocal_in_doubles(double x) { return 1 / std::sqrt(x); }
double normal_distribution_in_doubles(double x) { return std::erfc(-x / std::numbers::sqrt2) / 2; }
/// by Newton's method from a start of FP32
double erfinv_in_doubles(double x) {
  double y = static_cast<double>(cuda_math::erfinvf(HostNumber(static_cast<float>(x))).number());
  if (!(std::fabs(y) < 1e9) || x == 0) return y;
  for (int step = 0; step < 3; ++step) {
    const double miss = x < -0.5  ? std::erfc(-y) - (1 + x)
                        : x > 0.5 ? (1 - x) - std::erfc(y)
                                  : std::erf(y) - x;
    y -= miss * std::sqrt(std::numbers::pi) / 2 * std::exp(y * y);
  }
  return y;
}

/// Exact up to the last step: x less its nearest even integer is.
double sin_of_pi(double x) {
  const double r = std::remainder(x, 2);
  return std::trunc(x) == x
             ? x * 0
             : std::sin(std::numbers::pi * (std::fabs(r) > 0.5 ? std::copysign(1, r) - r : r));
}
double cos_of_pi(double x) {
  const double r = std::fabs(std::remainder(x, 2));
  return r < 0.25 ? std::cos(std::numbers::pi * r) : std::sin(std::numbers::pi * (0.5 - r));
}
double erfcx_in_doubles(double x) {
  if (x < 20) return std::exp(x * x) * std::erfc(x);
  const double i = 1 / (x * x);
  return std::numbers::inv_sqrtpi / x * (1 - i / 2 * (1 - 1.5 * i * (1 - 2.5 * i * (1 - 3.5 * i))));
}
double gamma_in_doubles(double x) {
  return x < 0 && std::trunc(x) == x ? std::numeric_limits<double>::quiet_NaN() : std::tgamma(x);
}
double cube_root_reciprocal_in_doubles(double x) { return 1 / std::cbrt(x); }
/// by Newton's method on the logarithm of erfc, from a start of FP32
double erfcinv_in_doubles(double x) {
  if (x > 1) return -erfcinv_in_doubles(2 - x);
  double y = static_cast<double>(cuda_math::erfcinvf(HostNumber(static_cast<float>(x))).number());
  if (!(std::fabs(y) < 1e9) || x == 1) return y;
  for (int step = 0; step < 4; ++step) {
    const double complement = std::erfc(y);
    y += std::log(complement / x) * complement * std::sqrt(std::numbers::pi) / 2 * std::exp(y * y);
  }
  return y;
}
double normal_quantile_in_doubles(double x) {
  return -std::numbers::sqrt2 * erfcinv_in_doubles(2 * x);
}

}  // namespace

std::vector<Function> cuda_functions() {
  using namespace cuda_math;
  return {
      function_of(
          "expf", "e^x", [](auto x) { return expf(x); }, in_doubles<std::exp>),
      function_of(
          "exp2f", "2^x", [](auto x) { return exp2f(x); }, in_doubles<std::exp2>),
      function_of(
          "exp10f", "10^x", [](auto x) { return exp10f(x); }, in_doubles<exp10_in_doubles>),
      function_of(
          "expm1f", "e^x - 1", [](auto x) { return expm1f(x); }, in_doubles<std::expm1>),
      function_of(
          "logf", "log(x)", [](auto x) { return logf(x); }, in_doubles<std::log>),
      function_of(
          "log2f", "log2(x)", [](auto x) { return log2f(x); }, in_doubles<std::log2>),
      function_of(
          "log10f", "log10(x)", [](auto x) { return log10f(x); }, in_doubles<std::log10>),
      function_of(
          "log1pf", "log(1 + x)", [](auto x) { return log1pf(x); }, in_doubles<std::log1p>),
      function_of(
          "tanhf", "tanh(x)", [](auto x) { return tanhf(x); }, in_doubles<std::tanh>),
      function_of(
          "sinhf", "sinh(x)", [](auto x) { return sinhf(x); }, in_doubles<std::sinh>),
      function_of(
          "coshf", "cosh(x)", [](auto x) { return coshf(x); }, in_doubles<std::cosh>),
      function_of(
          "asinhf", "asinh(x)", [](auto x) { return asinhf(x); }, in_doubles<std::asinh>),
      function_of(
          "acoshf", "acosh(x)", [](auto x) { return acoshf(x); }, in_doubles<std::acosh>),
      function_of(
          "atanhf", "atanh(x)", [](auto x) { return atanhf(x); }, in_doubles<std::atanh>),
      function_of(
          "sinf", "sin(x)", [](auto x) { return sinf(x); }, in_doubles<std::sin>),
      function_of(
          "cosf", "cos(x)", [](auto x) { return cosf(x); }, in_doubles<std::cos>),
      function_of(
          "tanf", "tan(x)", [](auto x) { return tanf(x); }, in_doubles<std::tan>),
      function_of(
          "asinf", "asin(x)", [](auto x) { return asinf(x); }, in_doubles<std::asin>),
      function_of(
          "acosf", "acos(x)", [](auto x) { return acosf(x); }, in_doubles<std::acos>),
      function_of(
          "atanf", "atan(x)", [](auto x) { return atanf(x); }, in_doubles<std::atan>),
      function_of(
          "atan2f", "the angle of (y, x): x is the ordinate, y the abscissa",
          [](auto x, auto y) { return atan2f(x, y); },
          [](double x, double y) { return std::atan2(x, y); }),
      function_of(
          "erff", "erf(x)", [](auto x) { return erff(x); }, in_doubles<std::erf>),
      function_of(
          "erfcf", "1 - erf(x)", [](auto x) { return erfcf(x); }, in_doubles<std::erfc>),
      function_of(
          "erfinvf", "the inverse of erf", [](auto x) { return erfinvf(x); },
          in_doubles<erfinv_in_doubles>),
      function_of(
          "normcdff", "the standard normal distribution", [](auto x) { return normcdff(x); },
          in_doubles<normal_distribution_in_doubles>),
      function_of(
          "lgammaf", "log(|gamma(x)|)", [](auto x) { return lgammaf(x); }, in_doubles<std::lgamma>),
      function_of(
          "powf", "x^y", [](auto x, auto y) { return powf(x, y); },
          [](double x, double y) { return std::pow(x, y); }),
      function_of(
          "hypotf", "sqrt(x^2 + y^2)", [](auto x, auto y) { return hypotf(x, y); },
          [](double x, double y) { return std::hypot(x, y); }),
      function_of(
          "sqrtf", "sqrt(x)", [](auto x) { return sqrtf(x); }, in_doubles<std::sqrt>),
      function_of(
          "rsqrtf", "1 / sqrt(x)", [](auto x) { return rsqrtf(x); },
          in_doubles<root_reciprocal_in_doubles>),
      function_of(
          "cbrtf", "the cube root", [](auto x) { return cbrtf(x); }, in_doubles<std::cbrt>),
      function_of(
          "__expf", "e^x", [](auto x) { return intrinsic_expf(x); }, in_doubles<std::exp>),
      function_of(
          "__logf", "log(x)", [](auto x) { return intrinsic_logf(x); }, in_doubles<std::log>),
      function_of(
          "__sinf", "sin(x)", [](auto x) { return mufu::sin_approx(x); }, in_doubles<std::sin>),
      function_of(
          "__cosf", "cos(x)", [](auto x) { return mufu::cos_approx(x); }, in_doubles<std::cos>),
      function_of(
          "sinpif", "sin(pi x)", [](auto x) { return sinpif(x); }, in_doubles<sin_of_pi>),
      function_of(
          "cospif", "cos(pi x)", [](auto x) { return cospif(x); }, in_doubles<cos_of_pi>),
      function_of(
          "erfcxf", "e^(x^2) (1 - erf(x))", [](auto x) { return erfcxf(x); },
          in_doubles<erfcx_in_doubles>),
      function_of(
          "erfcinvf", "the inverse of 1 - erf", [](auto x) { return erfcinvf(x); },
          in_doubles<erfcinv_in_doubles>),
      function_of(
          "normcdfinvf", "the inverse of the standard normal distribution",
          [](auto x) { return normcdfinvf(x); }, in_doubles<normal_quantile_in_doubles>),
      function_of(
          "tgammaf", "gamma(x)", [](auto x) { return tgammaf(x); }, in_doubles<gamma_in_doubles>),
      function_of(
          "rcbrtf", "the reciprocal of the cube root", [](auto x) { return rcbrtf(x); },
          in_doubles<cube_root_reciprocal_in_doubles>),
      function_of(
          "rhypotf", "1 / sqrt(x^2 + y^2)", [](auto x, auto y) { return rhypotf(x, y); },
          [](double x, double y) { return 1 / std::hypot(x, y); }),
      function_of(
          "__exp10f", "10^x", [](auto x) { return intrinsic_exp10f(x); },
          in_doubles<exp10_in_doubles>),
      function_of(
          "__log2f", "log2(x)", [](auto x) { return mufu::lg2_approx(x); }, in_doubles<std::log2>),
      function_of(
          "__log10f", "log10(x)", [](auto x) { return intrinsic_log10f(x); },
          in_doubles<std::log10>),
      function_of(
          "__tanf", "tan(x)", [](auto x) { return intrinsic_tanf(x); }, in_doubles<std::tan>),
      function_of(
          "__tanhf", "tanh(x)", [](auto x) { return mufu::tanh_approx(x); }, in_doubles<std::tanh>),
      function_of(
          "__powf", "x^y", [](auto x, auto y) { return intrinsic_powf(x, y); },
          [](double x, double y) { return std::exp2(y * std::log2(x)); }),
      function_of(
          "__fdividef", "x / y", [](auto x, auto y) { return mufu::div_approx(x, y); },
          [](double x, double y) { return x / y; }),
  };
}

}  // namespace guardbit::emulator
