#include <cmath>

#include "emulator/functions/cuda/cuda_parts.hpp"
#include "emulator/functions/cuda/cuda_remainders.hpp"
#include "emulator/functions/cuda_catalogue.hpp"
#include "emulator/functions/exact_functions.hpp"
#include "emulator/functions/unit/quotients.hpp"

namespace guardbit::emulator {

namespace {

using Results = std::array<double, most_results>;

// Formats of functions that give or take an integer.
constexpr FunctionFormats formats_of_integer_result = {
    {formats::fp32, formats::fp32, formats::fp32, formats::fp32}, {formats::int32, formats::fp32}};
constexpr FunctionFormats formats_of_second_integer = {
    {formats::fp32, formats::fp32, formats::fp32, formats::fp32}, {formats::fp32, formats::int32}};
constexpr FunctionFormats formats_of_number_and_integer = {
    {formats::fp32, formats::int32, formats::fp32, formats::fp32}, {formats::fp32, formats::fp32}};

}  // namespace

void add_number_functions(CudaCatalogue& all) {
  using namespace cuda_math;
  const auto quotient = [](double x, double y) { return x / y; };
  const auto div_approx = [](auto x, auto y) { return mufu::div_approx(x, y); };
  all.add_with_fast(
      "x / y", "x / y", [](auto x, auto y) { return x / y; }, div_approx, quotient);
  all.add_with_fast(
      "fdividef", "x / y", [](auto x, auto y) { return x / y; }, div_approx, quotient);
  all.add_with_fast(
      "1 / x", "1 / x", [](auto x) { return decltype(x)(1) / x; },
      [](auto x) { return mufu::rcp_approx(x); }, [](double x) { return 1 / x; });
  all.add(
      "fmaf", "x y + z, rounded once", [](auto x, auto y, auto z) { return fma(x, y, z); },
      [](double x, double y, double z) { return std::fma(x, y, z); });
  all.add(
      "fmodf", "x less y times the quotient, cut to an integer",
      [](auto x, auto y) { return fmodf(x, y); },
      [](double x, double y) { return std::fmod(x, y); });
  all.add(
      "remainderf", "x less y times the nearest integer to the quotient",
      [](auto x, auto y) { return remainderf(x, y); },
      [](double x, double y) { return std::remainder(x, y); });
  all.add<formats_of_second_integer>(
      "remquof", "the same, and that integer's last three bits",
      [](auto x, auto y) { return remquof(x, y); },
      [](double x, double y) {
        int bits = 0;
        const double rest = std::remquo(x, y, &bits);
        return Results{rest, std::isnan(rest) ? 0.0 : static_cast<double>(bits % 8)};
      });
  all.add(
      "fdimf", "x - y, if that is positive, else 0", [](auto x, auto y) { return fdimf(x, y); },
      [](double x, double y) { return std::fdim(x, y); });
  all.add(
      "fmaxf", "the larger number", [](auto x, auto y) { return fmaxf(x, y); },
      [](double x, double y) { return std::fmax(x, y); });
  all.add(
      "fminf", "the smaller number", [](auto x, auto y) { return fminf(x, y); },
      [](double x, double y) { return std::fmin(x, y); });
  all.add(
      "__saturatef", "x, but at least 0 and at most 1", [](auto x) { return saturatef(x); },
      [](double x) { return std::fmin(std::fmax(x, 0), 1); });
  all.add(
      "fabsf", "|x|", [](auto x) { return abs(x); }, [](double x) { return std::fabs(x); });
  all.add(
      "copysignf", "|x| with the sign of y", [](auto x, auto y) { return copysign(x, y); },
      [](double x, double y) { return std::copysign(x, y); });
  all.add(
      "nextafterf", "the number after x on the way to y",
      [](auto x, auto y) { return nextafterf(x, y); },
      [](double x, double y) {
        return static_cast<double>(std::nextafter(static_cast<float>(x), static_cast<float>(y)));
      });
  all.add(
      "rintf", "the nearest integer, ties to even", [](auto x) { return rint(x); },
      [](double x) { return std::nearbyint(x); });
  all.add(
      "nearbyintf", "the nearest integer, ties to even", [](auto x) { return rint(x); },
      [](double x) { return std::nearbyint(x); });
  all.add(
      "roundf", "the nearest integer, ties away from 0", [](auto x) { return roundf(x); },
      [](double x) { return std::round(x); });
  all.add(
      "truncf", "the integer toward 0", [](auto x) { return trunc(x); },
      [](double x) { return std::trunc(x); });
  all.add(
      "floorf", "the integer below", [](auto x) { return floorf(x); },
      [](double x) { return std::floor(x); });
  all.add(
      "ceilf", "the integer above", [](auto x) { return ceilf(x); },
      [](double x) { return std::ceil(x); });
  all.add(
      "modff", "the part after the point, and the integer before it",
      [](auto x) { return modff(x); },
      [](double x) {
        double whole = 0;
        const double rest = std::modf(x, &whole);
        return Results{rest, whole};
      });
  all.add(
      "logbf", "the exponent of |x|", [](auto x) { return logbf(x); },
      [](double x) { return std::logb(x); });
  all.add<formats_of_integer_result>(
      "ilogbf", "the exponent of |x|, an integer", [](auto x) { return ilogbf(x); },
      [](double x) { return static_cast<double>(std::ilogb(x)); });
  all.add<formats_of_second_integer>(
      "frexpf", "the significand from 1/2 to 1, and the exponent", [](auto x) { return frexpf(x); },
      [](double x) {
        int exponent = 0;
        const double significand = std::frexp(x, &exponent);
        return Results{significand, std::isfinite(x) ? static_cast<double>(exponent) : 0.0};
      });
  const auto times_power = [](auto x, auto n) { return ldexpf(x, n); };
  const auto exact_power = [](double x, double n) {
    return std::ldexp(x, static_cast<int>(std::fmin(std::fmax(n, -5000), 5000)));
  };
  all.add<formats_of_number_and_integer>("ldexpf", "x 2^y of an integer y", times_power,
                                         exact_power);
  all.add<formats_of_number_and_integer>("scalbnf", "x 2^y of an integer y", times_power,
                                         exact_power);
}

}  // namespace guardbit::emulator
