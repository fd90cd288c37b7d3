#include "experiments/harness/random_numbers.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "experiments/accuracy/errors.hpp"
#include "tests/catch.hpp"

namespace guardbit::tests {
namespace {

using experiments::Distribution;
using experiments::Draws;

TEST_CASE("logarithm and power agree with the C library") {
  double worst = 0;
  for (int e = -300; e <= 300; e += 7) {
    for (double m = 1; m < 2; m += 1.0 / 64) {
      const double x = std::ldexp(m, e);
      const double expected = std::log(x);
      worst = std::max(worst, std::abs(experiments::logarithm(x) - expected) /
                                  std::max(1.0, std::abs(expected)));
    }
  }
  CHECK(worst < 1e-15);
  worst = 0;
  for (double x = -40; x < 40; x += 1.0 / 32)
    worst = std::max(worst, std::abs(experiments::power_of_two(x) / std::exp2(x) - 1));
  CHECK(worst < 1e-15);
}

TEST_CASE("draws have the moments of their distributions") {
  // Of 40,000 draws a mean strays by more than 5 standard errors once in a million seeds.
  constexpr int count = 40000;
  struct Expected {
    Distribution distribution;
    double mean, deviation, error_of_deviation;
  };
  for (const Expected& x : {Expected{Distribution::normal, 0, 1, 0.02},
                            {Distribution::uniform, 0.5, std::sqrt(1.0 / 12), 0.01},
                            {Distribution::laplace, 0, 1, 0.04},
                            {Distribution::outliers, 0, std::sqrt(1 + 0.01 * 399), 0.4}}) {
    const Draws draws(7, "moments");
    double sum = 0, squares = 0;
    for (int i = 0; i < count; ++i) {
      const double y = draws.draw(x.distribution, static_cast<std::uint64_t>(i));
      sum += y;
      squares += y * y;
    }
    const double mean = sum / count;
    CHECK(std::abs(mean - x.mean) < 5 * x.deviation / std::sqrt(count));
    CHECK(std::abs(std::sqrt(squares / count - mean * mean) - x.deviation) < x.error_of_deviation);
  }
}

TEST_CASE("draws depend on the seed, the name and the index alone") {
  const Draws draws(1, "A");
  std::vector<float> one(50000), two(50000);
  draws.fill(Distribution::normal, one, 1);
  draws.fill(Distribution::normal, two, 4);
  CHECK(one == two);
  CHECK(one[40000] == static_cast<float>(draws.draw(Distribution::normal, 40000)));
  for (const Draws& other : {Draws(2, "A"), Draws(1, "B")}) {
    other.fill(Distribution::normal, two, 1);
    std::size_t same = 0;
    for (std::size_t i = 0; i < one.size(); ++i) same += one[i] == two[i] ? 1U : 0U;
    CHECK(same < 5);
  }
  CHECK(draws.bits(3).count == 32);
}

TEST_CASE("random matrices hold the draws, rounded") {
  const Draws draws(1, "matrix");
  const auto matrix = draws.matrix(formats::bf16, 8, 40, Distribution::normal, 1, 4);
  const std::vector<double> values = experiments::values_of(matrix);
  bool near = true;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double exact = 4 * draws.draw(Distribution::normal, i);
    near = near && std::abs(values[i] - exact) <= std::abs(exact) / 250;
  }
  CHECK(near);
}

}  // namespace
}  // namespace guardbit::tests
