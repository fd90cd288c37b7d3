#include "experiments/scaling/nvfp4_recipe.hpp"

#include <cmath>
#include <span>
#include <vector>

#include "experiments/suite/residue_products.hpp"
#include "tests/catch.hpp"

namespace guardbit::tests {
namespace {

using experiments::Draws;
using experiments::Nvfp4Recipe;

const Draws signs(1, "signs"), rounding(1, "rounding");

/// One block in which everything is a multiple of the scale: amax 2688 = 448 * 6.
std::vector<float> block_of(std::vector<float> elements) {
  elements.resize(16);
  for (float& x : elements) x *= 448;
  return elements;
}

TEST_CASE("NVFP4 gives back what its elements hold") {
  const auto x = block_of({6, -4, 3, 2, 1.5, 1, 0.5, 0, -0.5, -6});
  const auto outcome = experiments::nvfp4_round_trip(x, {}, signs, rounding);
  for (std::size_t i = 0; i < x.size(); ++i) CHECK(outcome.numbers[i] == static_cast<double>(x[i]));
  const auto random = experiments::nvfp4_round_trip(x, {.stochastic = true}, signs, rounding);
  CHECK(random.numbers == outcome.numbers);  // nothing to round
  CHECK(random.expected == 0);
}

TEST_CASE("4 over 6 takes the better scale of a block, and 6 where both are as good") {
  // 5 lies half between 4 and 6: with 6 as the largest it costs 1. Were 6 stored as 4, the unit
  // would be 672, past E4M3's largest scale; with 256 it is 384 of 256's.
  const auto x = block_of({6, 5, 5, 5, 5});
  const auto noise = [&](const Nvfp4Recipe& recipe) {
    return experiments::nvfp4_round_trip(x, recipe, signs, rounding).block_noise.at(0);
  };
  const double unit = 448 * 448;
  CHECK(noise({}) == 4 * unit);
  CHECK(noise({.four_over_six = true}) == 4 * unit);
  // Elements of 6 / 4: 5 becomes 3.33 and goes to 3, which stands for 4.5.
  CHECK(noise({.four_over_six = true, .largest_scale = 256}) == Approx(4 * 0.25 * unit));
}

TEST_CASE("the Hadamard transform is its own inverse and keeps the sum of squares") {
  std::vector<double> x(16), once(16);
  for (std::size_t i = 0; i < 16; ++i) x[i] = static_cast<double>(i * i) - 50;
  once = x;
  experiments::hadamard_16(std::span<double, 16>(once));
  double before = 0, after = 0;
  for (std::size_t i = 0; i < 16; ++i) {
    before += x[i] * x[i];
    after += once[i] * once[i];
  }
  CHECK(before == after);  // integers over 4
  experiments::hadamard_16(std::span<double, 16>(once));
  CHECK(once == x);
  std::vector<double> outlier(16);
  outlier[5] = 8;
  experiments::hadamard_16(std::span<double, 16>(outlier));
  for (const double v : outlier) CHECK(std::abs(v) == 2);
}

TEST_CASE("stochastic rounding goes up as often as it should") {
  std::vector<float> x(16 * 4096, 448 * 2.25F);
  for (std::size_t i = 0; i < x.size(); i += 16) x[i] = 448 * 6;
  const auto outcome = experiments::nvfp4_round_trip(x, {.stochastic = true}, signs, rounding);
  double up = 0;
  for (const double y : outcome.numbers) up += y == 448.0 * 3 ? 1 : 0;
  const double n = 15 * 4096;
  CHECK(std::abs(up / n - 0.25) < 4 * std::sqrt(0.25 * 0.75 / n));
}

TEST_CASE("moduli are coprime, the largest first") {
  const auto moduli = experiments::coprime_moduli(6);
  CHECK(moduli == std::vector<int>{256, 255, 253, 251, 247, 241});
  CHECK(experiments::coprime_moduli(experiments::most_moduli).size() == experiments::most_moduli);
}

}  // namespace
}  // namespace guardbit::tests
