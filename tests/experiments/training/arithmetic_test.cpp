#include <bit>
#include <cmath>
#include <vector>

#include "experiments/harness/random_numbers.hpp"
#include "experiments/training/training_arithmetic.hpp"
#include "tests/catch.hpp"

namespace guardbit::experiments::training {
namespace {

/// Steps between two FP32 numbers of one sign.
int steps_between(float a, float b) {
  return std::abs(std::bit_cast<int>(a) - std::bit_cast<int>(b));
}

}  // namespace

// Device code is compiled from the same text: it must stay constexpr.
static_assert(exponential(0.0F) == 1.0F && logarithm_of(1.0F) == 0.0F);
static_assert(run_sum(3, [](std::int64_t i) { return static_cast<float>(i); }) == 3.0F);

TEST_CASE("Exponentials and logarithms are the libraries', to the last place") {
  const Draws draws(3, "numbers");
  for (std::uint64_t i = 0; i < 20000; ++i) {
    const auto x = static_cast<float>(210 * draws.uniform(2 * i) - 115);
    INFO(x);
    const auto expected = static_cast<float>(std::exp(static_cast<double>(x)));
    REQUIRE(steps_between(exponential(x), expected) <= 1);
    const float positive =
        std::bit_cast<float>(static_cast<std::uint32_t>(1 + 0x7f7ffffe * draws.uniform(2 * i + 1)));
    INFO(positive);
    REQUIRE(steps_between(logarithm_of(positive),
                          static_cast<float>(std::log(static_cast<double>(positive)))) <= 1);
  }
  CHECK(exponential(-INFINITY) == 0.0F);
  CHECK(exponential(INFINITY) == INFINITY);
  CHECK(std::isnan(exponential(NAN)));
  CHECK(logarithm_of(0.0F) == -INFINITY);
  CHECK(std::isnan(logarithm_of(-1.0F)));
  CHECK(logarithm_of(INFINITY) == INFINITY);
}

TEST_CASE("The hyperbolic tangent is right to 1e-12 where its ways meet and elsewhere") {
  for (double x = -25; x < 25; x += 0.0037)
    REQUIRE(std::abs(hyperbolic_tangent(x) - std::tanh(x)) <= 1e-12);
  for (const double x : {0x1p-10, -0x1p-10, 0x1.fp-11, 1e-30, 0.0})
    REQUIRE(std::abs(hyperbolic_tangent(x) - std::tanh(x)) <= 1e-9 * std::abs(x));
}

TEST_CASE("Sums run in blocks of 256, in ascending order") {
  std::vector<float> x(700);
  Draws(4, "sum").fill(Distribution::log_uniform, x, 1);
  float total = 0;
  for (std::size_t begin = 0; begin < x.size(); begin += 256) {
    float part = 0;
    for (std::size_t i = begin; i < std::min<std::size_t>(x.size(), begin + 256); ++i) part += x[i];
    total += part;
  }
  CHECK(run_sum(700, [&](std::int64_t i) { return x[static_cast<std::size_t>(i)]; }) == total);
}

TEST_CASE("Optimizers step as PyTorch's formulas say") {
  SgdStep sgd{0.1F, 0.9F, 0.01F, false};
  const SgdStep::Result s = sgd(2.0F, 0.5F, 1.0F);
  CHECK(std::abs(s.momentum - (0.9 * 1.0 + 0.5 + 0.02)) < 1e-6);
  CHECK(std::abs(s.weight - (2.0 - 0.1 * (0.9 + 0.52))) < 1e-6);
  sgd.first = true;
  CHECK(sgd(2.0F, 0.5F, 1.0F).momentum == 0.5F + 0.01F * 2.0F);

  AdamStep adam;
  adam.weight_decay = 0.1F;
  adam.step_size = 0.02F;
  adam.root_correction = 0.5F;
  const double g = 0.3 + 0.1 * 2, m = 0.2 + (g - 0.2) * 0.1, v = 0.4 * 0.999 + g * g * 0.001;
  const AdamStep::Result a = adam(2.0F, 0.3F, 0.2F, 0.4F);
  CHECK(std::abs(a.first - m) < 1e-6);
  CHECK(std::abs(a.second - v) < 1e-6);
  CHECK(std::abs(a.weight - (2 - 0.02 * m / (std::sqrt(v) / 0.5 + 1e-8))) < 1e-6);
  adam.decoupled = true;
  const double m2 = 0.2 + (0.3 - 0.2) * 0.1, v2 = 0.4 * 0.999 + 0.09 * 0.001;
  CHECK(std::abs(adam(2.0F, 0.3F, 0.2F, 0.4F).weight -
                 (2 * (1 - 0.001 * 0.1) - 0.02 * m2 / (std::sqrt(v2) / 0.5 + 1e-8))) < 1e-6);
}

}  // namespace guardbit::experiments::training
