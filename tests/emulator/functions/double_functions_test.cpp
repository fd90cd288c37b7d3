#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>

#include "emulator/functions/cuda/cuda_double_functions.hpp"
#include "tests/catch.hpp"

// CUDA's functions of FP64: results that an H200 gave, how far they are from the true ones, and
// what they give at the ends of their ranges.
namespace guardbit::tests {
namespace {

namespace cuda = emulator::cuda_math;

constexpr double infinity = std::numeric_limits<double>::infinity();

/// By how many steps of FP64 a result is off.
double steps_off(double result, long double wanted) {
  const double nearest = static_cast<double>(wanted);
  if (result == nearest) return 0;
  const double step = std::nextafter(std::abs(nearest), infinity) - std::abs(nearest);
  return static_cast<double>(std::abs(static_cast<long double>(result) - wanted) /
                             static_cast<long double>(step));
}

struct JudgedFunction {
  double (*computed)(double);
  long double (*wanted)(long double);
  /// where operands are drawn, and how many steps results may be off
  double least, greatest, most;
};

}  // namespace

TEST_CASE("Functions of FP64 are those of an H200") {
  CHECK(cuda::acos(-0x1.67815f334e0a0p-4) == 0x1.a89f346c7cd18p+0);
  CHECK(cuda::acos(0x1.feb7833b17f5ep-1) == 0x1.220c523d59bbfp-4);
  CHECK(cuda::acosh(4) == 0x1.081eb4b421592p+1);
  CHECK(cuda::atan(0x1.df2a77cdbc7dep-4) == 0x1.dcff721242b44p-4);
  CHECK(cuda::atan(-0x1.803797b0ffb62p+1) == -0x1.3fcc939b93469p+0);
  CHECK(cuda::cosh(-2) == 0x1.e18fa0df2d9bcp+1);
  CHECK(cuda::cosh(-4) == 0x1.b4ee858de3e80p+4);
  CHECK(cuda::exp2(0x1.080141416a2cap-3) == 0x1.17ed66d90991fp+0);
  CHECK(cuda::exp2(-0x1.a088857f91045p+1) == 0x1.ad4c23c5fed72p-4);
  CHECK(cuda::sinh(0x1.3440bb855d3f0p-3) == 0x1.356b065b579dfp-3);
  CHECK(cuda::sinh(-0x1.9773318bff4e4p+1) == -0x1.8151b1315eaa7p+3);
  CHECK(cuda::pow(0x1.6415f1e853c9fp-1, -2.3903973739652633) == 0x1.30f04a38da6dbp+1);
  CHECK(cuda::pow(0x1.37f7fb20305efp+1, -2.3903973739652633) == 0x1.e6fb59e60300cp-4);
  // The lesser operand is too small to matter; its program rounds upward.
  CHECK(cuda::hypot(0x1.63b6bde175762p-85, 0x1.b5b3bcd228a50p+117) == 0x1.b5b3bcd228a51p+117);
  CHECK(cuda::hypot(-0x1.7f8553c2215a6p+142, 0x1.157816037faf3p+41) == 0x1.7f8553c2215a6p+142);
  // x - tanh(x)
  const double x = -0x1.91cc00cd1f819p+1;
  CHECK(x - cuda::tanh(x) == -0x1.1246c8c4c2f56p+1);
}

TEST_CASE("Functions of FP64 are near the true ones") {
  const std::array functions = {
      JudgedFunction{cuda::exp2, std::exp2, -1070, 1023, 2},
      JudgedFunction{cuda::expm1, std::expm1, -50, 700, 2},
      JudgedFunction{cuda::tanh, std::tanh, -30, 30, 2},
      JudgedFunction{cuda::tanh, std::tanh, -1, 1, 2},
      JudgedFunction{cuda::sinh, std::sinh, -700, 700, 3},
      JudgedFunction{cuda::sinh, std::sinh, -1, 1, 3},
      JudgedFunction{cuda::cosh, std::cosh, -700, 700, 2},
      JudgedFunction{cuda::acosh, std::acosh, 1, 40, 3},
      JudgedFunction{cuda::acosh, std::acosh, 1, 1e300, 3},
      JudgedFunction{cuda::acos, std::acos, -1, 1, 2},
      JudgedFunction{cuda::atan, std::atan, -3, 3, 2},
      JudgedFunction{cuda::atan, std::atan, -1e5, 1e5, 2},
      JudgedFunction{cuda::erf, std::erf, -6, 6, 2},
      JudgedFunction{cuda::log1p, std::log1p, -0.9, 9, 2},
  };
  std::mt19937_64 generator(7);
  for (const JudgedFunction& function : functions) {
    std::uniform_real_distribution<double> operands(function.least, function.greatest);
    double most = 0;
    for (int i = 0; i < 2000; ++i) {
      const double x = operands(generator);
      most = std::max(most, steps_off(function.computed(x), function.wanted(x)));
    }
    INFO("of " << function.least << " to " << function.greatest);
    CHECK(most < function.most);
  }
}

TEST_CASE("Powers and lengths of FP64 are near the true ones") {
  std::mt19937_64 generator(8);
  std::uniform_real_distribution<double> exponents(-30, 30), operands(-12, 12);
  for (int i = 0; i < 4000; ++i) {
    const double x = std::exp(operands(generator)), y = exponents(generator);
    CHECK(steps_off(cuda::pow(x, y), std::pow(static_cast<long double>(x), y)) < 2);
    const double other = std::exp(operands(generator));
    CHECK(steps_off(cuda::hypot(x, -other), std::hypot(static_cast<long double>(x), other)) < 2);
  }
  CHECK(steps_off(cuda::hypot(0x1p1000, 0x1p1001), std::hypot(0x1p1000L, 0x1p1001L)) < 2);
  CHECK(cuda::hypot(3e-320, 4e-320) == 5e-320);
}

TEST_CASE("Powers of FP64 have C's special results") {
  const std::array numbers = {0.0, -0.0, 1.0,  -1.0, 0.5,      -0.5,      2.0,
                              3.0, -3.0, -2.0, 2.5,  infinity, -infinity, std::nan("")};
  for (const double x : numbers) {
    for (const double y : numbers) {
      const double computed = cuda::pow(x, y), wanted = std::pow(x, y);
      INFO(x << " to the power of " << y);
      if (wanted != wanted) {
        CHECK(computed != computed);
      } else if (wanted == 0 || std::isinf(wanted)) {
        CHECK(std::bit_cast<std::uint64_t>(computed) == std::bit_cast<std::uint64_t>(wanted));
      } else {
        CHECK(steps_off(computed, static_cast<long double>(wanted)) < 2);
      }
    }
  }
}

TEST_CASE("Functions of FP64 at the ends of their ranges") {
  CHECK(cuda::exp2(1024) == infinity);
  CHECK(cuda::exp2(-1074) == 0x1p-1074);
  CHECK(cuda::exp2(-infinity) == 0);
  CHECK(cuda::expm1(-infinity) == -1);
  CHECK(cuda::expm1(710) == infinity);
  CHECK(cuda::expm1(0x1p-1074) == 0x1p-1074);
  CHECK(std::signbit(cuda::expm1(-0.0)));
  CHECK(cuda::tanh(infinity) == 1);
  CHECK(cuda::tanh(-1e300) == -1);
  CHECK(cuda::sinh(-infinity) == -infinity);
  CHECK(cuda::cosh(-infinity) == infinity);
  CHECK(cuda::erf(-infinity) == -1);
  CHECK(cuda::acos(1) == 0);
  CHECK(std::isnan(cuda::acos(1.5)));
  CHECK(cuda::acosh(1) == 0);
  CHECK(std::isnan(cuda::acosh(0.5)));
  CHECK(cuda::acosh(infinity) == infinity);
  CHECK(cuda::atan(infinity) == 0x1.921fb54442d18p+0);
  CHECK(cuda::hypot(infinity, 1) == infinity);
  CHECK(cuda::hypot(0, -0.0) == 0);
  for (const auto function : {cuda::exp2, cuda::expm1, cuda::tanh, cuda::sinh, cuda::cosh,
                              cuda::erf, cuda::acos, cuda::acosh, cuda::atan})
    CHECK(std::isnan(function(std::nan(""))));
}

}  // namespace guardbit::tests
