#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "experiments/quantisation/integer_product.hpp"
#include "experiments/quantisation/integer_tensor.hpp"
#include "experiments/quantisation/requantisation.hpp"
#include "experiments/quantisation/structured_sparsity.hpp"
#include "formats/support/error.hpp"
#include "tests/catch.hpp"
#include "tests/oracle/calibration.hpp"

namespace guardbit::tests {
namespace {

using experiments::IntegerArithmetic;
using experiments::IntegerGrid;
using experiments::StraightThrough;

TEST_CASE("scales and zero points are those of torch's MinMaxObserver") {
  // torch 2.15: quint8 and qint8 affine, qint8 and quint8 symmetric.
  struct Recorded {
    float least, largest, affine_scale;
    int affine_unsigned, affine_signed;
    float symmetric_scale;
  };
  const std::vector<Recorded> recorded = {
      {-1.3F, 2.7F, 0.01568627543747425F, 83, -45, 0.021176470443606377F},
      {0.5F, 3.0F, 0.0117647061124444F, 0, -128, 0.0235294122248888F},
      {-5, -1, 0.019607843831181526F, 255, 127, 0.03921568766236305F},
      {0, 0, 0x1p-23F, 0, -128, 0x1p-23F},
      {-1e-9F, 1e-9F, 0x1p-23F, 0, -128, 0x1p-23F},
  };
  for (const Recorded& r : recorded) {
    INFO(r.least << " to " << r.largest);
    const auto affine = [&](bool is_unsigned) {
      return experiments::affine_grid(r.least, r.largest, 8, is_unsigned,
                                      IntegerArithmetic::pytorch);
    };
    CHECK(affine(true).factor == r.affine_scale);
    CHECK(affine(true).zero == r.affine_unsigned);
    CHECK(affine(false).factor == r.affine_scale);
    CHECK(affine(false).zero == r.affine_signed);
    const float amax = std::max(std::fabs(r.least), std::fabs(r.largest));
    CHECK(experiments::pytorch_grid(amax, 8, false).factor == r.symmetric_scale);
    CHECK(experiments::pytorch_grid(amax, 8, false).zero == 0);
    CHECK(experiments::pytorch_grid(amax, 8, true).zero == 128);
  }
}

TEST_CASE("learned scales have the gradients of torch") {
  // torch 2.15, _fake_quantize_learnable_per_tensor_affine, scale 0.1, zero point 3, qint8.
  struct Recorded {
    float x, y, by_x, by_scale, by_zero;
  };
  const std::vector<Recorded> recorded = {
      {12.74F, 12.40000057220459F, 0, 124, -0.1F},
      {12.75F, 12.40000057220459F, 0, 124, -0.1F},
      {-12.85F, -12.800000190734863F, 1, -0.4999980926513672F, 0},
      {-12.9F, -12.90000057220459F, 1, -5.736947059631348e-06F, 0},
      {0.04F, 0, 1, -0.3999999761581421F, 0},
      {3.333F, 3.299999952316284F, 1, -0.3299989700317383F, 0},
      {-20, -13.100000381469727F, 0, -131, -0.1F},
      {15, 12.40000057220459F, 0, 124, -0.1F},
  };
  const IntegerGrid grid{IntegerArithmetic::pytorch, 0.1F, 3, -128, 127};
  for (const Recorded& r : recorded) {
    INFO(r.x);
    CHECK(grid.fake_quantised(r.x) == r.y);
    const auto g = experiments::gradient_of(StraightThrough::learned_scale, grid, r.x);
    CHECK(g.x == r.by_x);
    // torch subtracts before it divides, too, but in its own order: a few units of the last place
    // of numbers up to 13, over 0.1.
    CHECK(std::abs(g.scale - r.by_scale) <= 16 * 0x1p-23F * 10);
    CHECK(g.zero == r.by_zero);
  }
  CHECK(experiments::learned_step_factor(100, {IntegerArithmetic::divide, 1, 0, -7, 4}) == 0.05F);
}

TEST_CASE("straight-through estimators cut where they say") {
  const IntegerGrid pytorch{IntegerArithmetic::pytorch, 0.1F, 0, -128, 127};
  const auto passes = [](StraightThrough variant, const IntegerGrid& grid, float x) {
    return experiments::gradient_of(variant, grid, x, 12.7F).x == 1;
  };
  CHECK(passes(StraightThrough::pytorch, pytorch, 12.74F));
  CHECK_FALSE(passes(StraightThrough::pytorch, pytorch, 12.75F));
  CHECK(passes(StraightThrough::pytorch, pytorch, -12.85F));
  CHECK(passes(StraightThrough::pass_through, pytorch, 1000));
  const IntegerGrid modelopt = experiments::modelopt_grid(12.7F, 8, false);
  CHECK(passes(StraightThrough::modelopt, modelopt, 12.7F));
  CHECK_FALSE(passes(StraightThrough::modelopt, modelopt, 12.71F));
  CHECK_FALSE(passes(StraightThrough::modelopt, modelopt, -12.71F));
}

TEST_CASE("arithmetics of integers agree with an independent one, and differ at ties") {
  std::mt19937 engine(3);
  std::uniform_real_distribution<float> numbers(-2, 2);
  for (const int bits : {8, 4, 2}) {
    const int bound = (1 << (bits - 1)) - 1;
    for (int i = 0; i < 2000; ++i) {
      const float x = numbers(engine), amax = std::fabs(numbers(engine)) + 0.01F;
      const float judged = oracle::integer_round_trip(x, amax, -bound, bound);
      CHECK(experiments::modelopt_grid(amax, bits, false).fake_quantised(x) == judged);
      experiments::CalibrationOptions options;
      options.bits = bits;
      CHECK(experiments::fake_quantised(x, amax, options) == judged);
    }
  }
  CHECK(experiments::modelopt_grid(0x1p-24F, 8, false).fake_quantised(1) == 0);
  // Where x / s rounds to a half, x * (1 / s) need not.
  int apart = 0;
  for (int i = 1; i < 50; ++i) {
    const float scale = 0.013F * static_cast<float>(i);
    const IntegerGrid divide{IntegerArithmetic::divide, scale, 0, -127, 127};
    const IntegerGrid multiply{IntegerArithmetic::pytorch, scale, 0, -127, 127};
    for (int k = 0; k < 127; ++k) {
      const float x = (static_cast<float>(k) + 0.5F) * scale;
      const int difference = divide.quantised(x) - multiply.quantised(x);
      CHECK(std::abs(difference) <= 1);
      apart += std::abs(difference);
    }
  }
  CHECK(apart > 0);
}

TEST_CASE("scales belong to tensors, channels and blocks") {
  const std::vector<float> numbers = {1, 2, 3, 4, 5, 60, 7, 8, 9, 10, 11, 12};
  experiments::IntegerScheme scheme;
  const auto amax_of = [&](experiments::Granularity granularity, std::size_t axis) {
    scheme.granularity = granularity;
    scheme.axis = axis;
    scheme.block = 2;
    return experiments::quantised(numbers, {4, 3}, scheme, "test").amax;
  };
  using experiments::Granularity;
  CHECK(amax_of(Granularity::tensor, 0) == std::vector<float>{60});
  CHECK(amax_of(Granularity::channel, 0) == std::vector<float>{3, 60, 9, 12});
  CHECK(amax_of(Granularity::channel, 1) == std::vector<float>{10, 11, 60});
  CHECK(amax_of(Granularity::block, 0) == std::vector<float>{2, 3, 5, 60, 8, 9, 11, 12});
  CHECK_THROWS_AS(amax_of(Granularity::channel, 2), formats::Error);
  scheme.affine = true;
  CHECK_THROWS_AS(experiments::require_scheme(scheme, "test"), formats::Error);
  scheme.granularity = Granularity::tensor;
  scheme.arithmetic = IntegerArithmetic::pytorch;
  const auto t = experiments::quantised(numbers, {4, 3}, scheme, "test");
  CHECK(t.grids[0].zero == -128);
  CHECK(t.code(5) == 127);
  const auto errors = experiments::errors_of(t, numbers);
  CHECK(errors.clipped == 0);
  CHECK(errors.largest <= 60.0 / 255 / 2 * (1 + 1e-6));
}

TEST_CASE("requantisation agrees with exact arithmetic") {
  using experiments::Requantisation;
  using experiments::RequantisationRule;
  std::mt19937 engine(7);
  std::uniform_int_distribution<std::int32_t> sums(std::numeric_limits<std::int32_t>::min(),
                                                   std::numeric_limits<std::int32_t>::max());
  std::uniform_real_distribution<double> exponents(-30, 2);
  int twice_differs = 0, fp32_differs = 0;
  for (int i = 0; i < 20000; ++i) {
    auto factor = static_cast<float>(std::exp2(exponents(engine)));
    if (i % 3 == 0) factor = std::ldexp(1.0F, static_cast<int>(exponents(engine)));  // makes ties
    const std::int32_t sum = sums(engine) >> (i % 24);
    const auto f = experiments::fixed_point(factor);
    const auto exact = Requantisation(RequantisationRule::exact, factor)(sum);
    CHECK(exact == oracle::rounded_product(sum, factor, oracle::Halves::even));
    // 31 bits of the multiplier hold all 24 of the factor.
    const double multiplied = std::ldexp(f.multiplier, f.shift - 31);
    CHECK(multiplied == static_cast<double>(factor));
    CHECK(Requantisation(RequantisationRule::single_rounding, factor)(sum) ==
          oracle::rounded_product(sum, multiplied, oracle::Halves::up));
    const auto twice = Requantisation(RequantisationRule::double_rounding, factor)(sum);
    if (std::abs(static_cast<double>(sum)) * std::ldexp(1, std::max(f.shift, 0)) < 0x1p31)
      CHECK(twice == oracle::twice_rounded_product(sum, f.multiplier, f.shift));
    twice_differs += twice != exact ? 1 : 0;
    fp32_differs += Requantisation(RequantisationRule::fp32, factor)(sum) != exact ? 1 : 0;
  }
  CHECK(twice_differs > 100);
  CHECK(fp32_differs > 100);
  // 2.5 by every rule, and 2.4999999998, which the first rounding lifts to a tie.
  const auto rounded = [](RequantisationRule rule, std::int32_t sum, float factor) {
    return Requantisation(rule, factor)(sum);
  };
  CHECK(rounded(RequantisationRule::exact, 5, 0.5F) == 2);
  CHECK(rounded(RequantisationRule::fp32, 5, 0.5F) == 2);
  CHECK(rounded(RequantisationRule::single_rounding, 5, 0.5F) == 3);
  CHECK(rounded(RequantisationRule::double_rounding, 5, 0.5F) == 3);
  CHECK(rounded(RequantisationRule::single_rounding, -5, 0.5F) == -2);
  CHECK(rounded(RequantisationRule::double_rounding, -5, 0.25F) == -1);
  CHECK(Requantisation(RequantisationRule::exact, 1.0F)(1000, 3, -128, 127) == 127);
  CHECK(experiments::fixed_point(0x1p-40) == experiments::FixedPointFactor{});
}

TEST_CASE("an integer product takes off the zero points") {
  std::mt19937 engine(5);
  std::uniform_real_distribution<float> numbers(-1, 3);
  constexpr std::int64_t m = 5, k = 70, n = 4;
  std::vector<float> a(m * k), b(k * n);
  for (auto* const x : {&a, &b})
    for (float& number : *x) number = numbers(engine);
  for (const int bits : {8, 4}) {
    for (const bool is_unsigned : {false, true}) {
      experiments::IntegerScheme scheme;
      scheme.calibration.bits = bits;
      scheme.calibration.is_unsigned = is_unsigned;
      scheme.affine = true;
      scheme.arithmetic = IntegerArithmetic::divide;
      scheme.granularity = experiments::Granularity::channel;
      const auto x = experiments::quantised(a, {m, k}, scheme, "test");
      scheme.axis = 1;
      const auto y = experiments::quantised(b, {k, n}, scheme, "test");
      const auto product = experiments::multiply(x, y, {}, "test");
      for (std::size_t i = 0; i < m; ++i) {
        for (std::size_t j = 0; j < n; ++j) {
          std::int64_t sum = 0;
          for (std::size_t p = 0; p < k; ++p)
            sum += (x.code(i * k + p) - x.grids[i].zero) * (y.code(p * n + j) - y.grids[j].zero);
          CHECK(product.sums[i * n + j] == sum);
        }
      }
    }
  }
}

TEST_CASE("2:4 pruning keeps the lower index of equal magnitudes and says so") {
  std::vector<float> w = {1, -1, 1, 0, 4, 1, -3, 2, 0x1p25F, 1, 0.75F, 0};
  const auto summary = experiments::prune(
      w, experiments::input_axis(std::vector<std::int64_t>{1, 12}, "test"), "test");
  CHECK(w == std::vector<float>{1, -1, 0, 0, 4, 0, -3, 0, 0x1p25F, 1, 0, 0});
  CHECK(summary.groups == 3);
  CHECK(summary.ties == 1);
  // 2^25 + 1 and 2^25 + 0.75 are one number of FP32.
  CHECK(summary.rounded_ties == 1);
  CHECK(summary.kept == 2 + 7 + 0x1p25 + 1);
  CHECK(summary.all == 3 + 10 + 0x1p25 + 1.75);
  const std::array<float, 4> group = {0, 5, 0, -6};
  const auto pair = experiments::stored_pair(group);
  CHECK(pair.first == 5);
  CHECK(pair.second == -6);
  CHECK(pair.places == 0b1101);
  // Channels of a convolution are 4 apart here.
  std::vector<float> filter = {1, 2, 3, 4, 4, 3, 2, 1, 0, 0, 0, 0, 9, 9, 9, 9};
  experiments::prune(filter, experiments::input_axis(std::vector<std::int64_t>{1, 4, 2, 2}, "test"),
                     "test");
  CHECK(filter == std::vector<float>{0, 0, 3, 4, 4, 3, 0, 0, 0, 0, 0, 0, 9, 9, 9, 9});
  CHECK_THROWS_AS(experiments::input_axis(std::vector<std::int64_t>{1, 6}, "test"), formats::Error);
  CHECK_THROWS_AS(experiments::input_axis(std::vector<std::int64_t>{4}, "test"), formats::Error);
  std::vector<float> bad = {1, 2, std::nanf(""), 3};
  CHECK_THROWS_AS(experiments::prune(bad, {4, 1}, "test"), formats::Error);
}

TEST_CASE("a pruned product runs on the sparse instruction and gives the dense one's sums") {
  std::mt19937 engine(9);
  std::normal_distribution<float> numbers;
  constexpr std::int64_t m = 16, k = 128, n = 8;
  std::vector<float> a(m * k), b(k * n);
  for (auto* const x : {&a, &b})
    for (float& number : *x) number = numbers(engine);
  experiments::IntegerProductOptions sparse;
  sparse.sparse = true;
  experiments::IntegerScheme scheme;
  const auto y = experiments::quantised(b, {k, n}, scheme, "test");
  const auto dense_a = experiments::quantised(a, {m, k}, scheme, "test");
  CHECK_THROWS_AS(experiments::multiply(dense_a, y, sparse, "test"), formats::Error);
  experiments::prune(a, experiments::input_axis(std::vector<std::int64_t>{m, k}, "test"), "test");
  const auto x = experiments::quantised(a, {m, k}, scheme, "test");
  const auto by_sparse = experiments::multiply(x, y, sparse, "test");
  CHECK(by_sparse.instruction.starts_with("mma.sp"));
  CHECK(by_sparse.sums == experiments::multiply(x, y, {}, "test").sums);
}

}  // namespace
}  // namespace guardbit::tests
