#include <cmath>

#include "emulator/functions/cuda/cuda_bessel.hpp"
#include "emulator/functions/cuda/cuda_bessel_orders.hpp"
#include "emulator/functions/cuda/cuda_error_functions.hpp"
#include "emulator/functions/cuda/cuda_gamma.hpp"
#include "emulator/functions/cuda/cuda_powers.hpp"
#include "emulator/functions/cuda_catalogue.hpp"
#include "emulator/functions/exact_functions.hpp"
#include "emulator/functions/unit/quotients.hpp"

namespace guardbit::emulator {

namespace {

/// Functions of an integer and a number.
constexpr FunctionFormats formats_of_order_and_number = {
    {formats::int32, formats::fp32, formats::fp32, formats::fp32}, {formats::fp32, formats::fp32}};

}  // namespace

void add_special_functions(CudaCatalogue& all) {
  using namespace cuda_math;
  all.add(
      "erff", "erf(x)", [](auto x) { return erff(x); }, [](double x) { return std::erf(x); });
  all.add(
      "erfcf", "1 - erf(x)", [](auto x) { return erfcf(x); },
      [](double x) { return std::erfc(x); });
  all.add(
      "erfinvf", "the inverse of erf", [](auto x) { return erfinvf(x); }, exact::inverse_erf);
  all.add(
      "erfcinvf", "the inverse of 1 - erf", [](auto x) { return erfcinvf(x); },
      exact::inverse_erfc);
  all.add(
      "erfcxf", "e^(x^2) (1 - erf(x))", [](auto x) { return erfcxf(x); }, exact::scaled_erfc);
  all.add(
      "normcdff", "the standard normal distribution", [](auto x) { return normcdff(x); },
      exact::normal_distribution);
  all.add(
      "normcdfinvf", "the inverse of the standard normal distribution",
      [](auto x) { return normcdfinvf(x); }, exact::normal_quantile);
  all.add(
      "lgammaf", "log(|gamma(x)|)", [](auto x) { return lgammaf(x); },
      [](double x) { return std::lgamma(x); });
  all.add(
      "tgammaf", "gamma(x)", [](auto x) { return tgammaf(x); }, exact::gamma);
  all.add_with_fast(
      "powf", "x^y", [](auto x, auto y) { return powf(x, y); },
      [](auto x, auto y) { return intrinsic_powf(x, y); },
      [](double x, double y) { return std::pow(x, y); });
  all.add(
      "__powf", "x^y", [](auto x, auto y) { return intrinsic_powf(x, y); },
      [](double x, double y) { return std::exp2(y * std::log2(x)); });
  all.add(
      "hypotf", "sqrt(x^2 + y^2)", [](auto x, auto y) { return hypotf(x, y); },
      [](double x, double y) { return std::hypot(x, y); });
  all.add(
      "rhypotf", "1 / sqrt(x^2 + y^2)", [](auto x, auto y) { return rhypotf(x, y); },
      [](double x, double y) { return 1 / std::hypot(x, y); });
  all.add(
      "sqrtf", "sqrt(x)", [](auto x) { return sqrtf(x); }, [](double x) { return std::sqrt(x); });
  all.add(
      "rsqrtf", "1 / sqrt(x)", [](auto x) { return rsqrtf(x); }, exact::reciprocal_root);
  all.add(
      "cbrtf", "the cube root", [](auto x) { return cbrtf(x); },
      [](double x) { return std::cbrt(x); });
  all.add(
      "rcbrtf", "the reciprocal of the cube root", [](auto x) { return rcbrtf(x); },
      exact::reciprocal_cube_root);
  all.add(
      "__fdividef", "x / y", [](auto x, auto y) { return mufu::div_approx(x, y); },
      [](double x, double y) { return x / y; });
  all.add(
      "j0f", "the Bessel function of the first kind of order 0", [](auto x) { return j0f(x); },
      [](double x) { return ::j0(x); });
  all.add(
      "j1f", "the Bessel function of the first kind of order 1", [](auto x) { return j1f(x); },
      [](double x) { return ::j1(x); });
  all.add(
      "y0f", "the Bessel function of the second kind of order 0", [](auto x) { return y0f(x); },
      exact::bessel_y0);
  all.add(
      "y1f", "the Bessel function of the second kind of order 1", [](auto x) { return y1f(x); },
      exact::bessel_y1);
  all.add<formats_of_order_and_number>(
      "jnf", "the Bessel function of the first kind of order x, of y",
      [](auto n, auto x) { return jnf(n, x); }, exact::bessel_j);
  all.add<formats_of_order_and_number>(
      "ynf", "the Bessel function of the second kind of order x, of y",
      [](auto n, auto x) { return ynf(n, x); }, exact::bessel_y);
  all.add(
      "cyl_bessel_i0f", "the modified Bessel function of the first kind of order 0",
      [](auto x) { return cyl_bessel_i0f(x); }, exact::bessel_i0);
  all.add(
      "cyl_bessel_i1f", "the modified Bessel function of the first kind of order 1",
      [](auto x) { return cyl_bessel_i1f(x); }, exact::bessel_i1);
  all.add(
      "norm3df", "sqrt(x^2 + y^2 + z^2)", [](auto x, auto y, auto z) { return norm3df(x, y, z); },
      [](double x, double y, double z) { return std::hypot(x, y, z); });
  all.add(
      "rnorm3df", "1 / sqrt(x^2 + y^2 + z^2)",
      [](auto x, auto y, auto z) { return rnorm3df(x, y, z); },
      [](double x, double y, double z) { return 1 / std::hypot(x, y, z); });
  all.add(
      "norm4df", "sqrt(x^2 + y^2 + z^2 + w^2)",
      [](auto x, auto y, auto z, auto w) { return norm4df(x, y, z, w); },
      [](double x, double y, double z, double w) { return std::hypot(std::hypot(x, y, z), w); });
  all.add(
      "rnorm4df", "1 / sqrt(x^2 + y^2 + z^2 + w^2)",
      [](auto x, auto y, auto z, auto w) { return rnorm4df(x, y, z, w); },
      [](double x, double y, double z, double w) {
        return 1 / std::hypot(std::hypot(x, y, z), w);
      });
  all.add(
      "__frsqrt_rn", "1 / sqrt(x), rounded correctly", [](auto x) { return rounded_rsqrtf(x); },
      exact::reciprocal_root);
}

}  // namespace guardbit::emulator
