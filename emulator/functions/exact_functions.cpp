#include "emulator/functions/exact_functions.hpp"

#include <cmath>
#include <limits>
#include <numbers>

#include "emulator/functions/cuda/cuda_error_functions.hpp"
#include "emulator/functions/numbers/host_number.hpp"

namespace guardbit::emulator::exact {

double exp10(double x) { return std::pow(10, x); }
double reciprocal_root(double x) { return 1 / std::sqrt(x); }
double reciprocal_cube_root(double x) { return 1 / std::cbrt(x); }

// Exact up to the last step: x less its nearest even integer is.
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

double normal_distribution(double x) { return std::erfc(-x / std::numbers::sqrt2) / 2; }
double normal_quantile(double x) { return -std::numbers::sqrt2 * inverse_erfc(2 * x); }

// By Newton's method from a start of FP32.
double inverse_erf(double x) {
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
// The same on the logarithm of erfc.
double inverse_erfc(double x) {
  if (x > 1) return -inverse_erfc(2 - x);
  double y = static_cast<double>(cuda_math::erfcinvf(HostNumber(static_cast<float>(x))).number());
  if (!(std::fabs(y) < 1e9) || x == 1) return y;
  for (int step = 0; step < 4; ++step) {
    const double complement = std::erfc(y);
    y += std::log(complement / x) * complement * std::sqrt(std::numbers::pi) / 2 * std::exp(y * y);
  }
  return y;
}
double scaled_erfc(double x) {
  if (x < 20) return std::exp(x * x) * std::erfc(x);
  const double i = 1 / (x * x);
  return std::numbers::inv_sqrtpi / x * (1 - i / 2 * (1 - 1.5 * i * (1 - 2.5 * i * (1 - 3.5 * i))));
}

double gamma(double x) {
  return x < 0 && std::trunc(x) == x ? std::numeric_limits<double>::quiet_NaN() : std::tgamma(x);
}

namespace {
/// (x/2)^order times the sum of (x/2)^(2k) / (k! (k + order)!), of which no term is negative.
double modified_bessel(int order, double x) {
  const double half = x / 2;
  if (!(std::fabs(half) < 1e3)) return order == 0 ? std::fabs(x) : x;
  double term = order == 0 ? 1 : half, sum = term;
  for (int k = 1; term != 0 && std::fabs(term) > 1e-20 * std::fabs(sum); ++k) {
    term *= half * half / (double(k) * (k + order));
    sum += term;
  }
  return sum;
}
}  // namespace
double bessel_i0(double x) { return modified_bessel(0, x); }
double bessel_i1(double x) { return modified_bessel(1, x); }

double bessel_y0(double x) { return x < 0 ? std::numeric_limits<double>::quiet_NaN() : ::y0(x); }
double bessel_y1(double x) { return x < 0 ? std::numeric_limits<double>::quiet_NaN() : ::y1(x); }
double bessel_j(double order, double x) {
  return order < 0 ? std::numeric_limits<double>::quiet_NaN() : ::jn(static_cast<int>(order), x);
}
double bessel_y(double order, double x) {
  return order < 0 || x < 0 ? std::numeric_limits<double>::quiet_NaN()
                            : ::yn(static_cast<int>(order), x);
}

}  // namespace guardbit::emulator::exact
