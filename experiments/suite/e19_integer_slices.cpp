#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "experiments/errors.hpp"
#include "experiments/run.hpp"
#include "experiments/suite/suite.hpp"

namespace guardbit::experiments {

namespace {

/// FP64 numbers, row-major; of B the transpose, so that both are dotted along rows.
struct Numbers {
  std::int64_t rows = 0, k = 0;
  std::vector<double> values;
  double at(std::int64_t i, std::int64_t j) const {
    return values[static_cast<std::size_t>(i * k + j)];
  }
};

/// 53 random bits times 2^e, e uniform over [-range, range].
Numbers draw(const Draws& draws, const Draws& exponents, std::int64_t rows, std::int64_t k,
             std::int64_t range) {
  Numbers x{rows, k, {}};
  for (std::int64_t i = 0; i < rows * k; ++i) {
    const auto index = static_cast<std::uint64_t>(i);
    const auto span = static_cast<double>(2 * range + 1);
    const int e =
        static_cast<int>(std::floor(exponents.uniform(index) * span)) - static_cast<int>(range);
    x.values.push_back(std::ldexp(2 * draws.uniform(index) - 1, e));
  }
  return x;
}

/// The product by INT8 slices of 7 bits, added in FP64 from the smallest on.
std::vector<double> sliced_product(Run& run, const emulator::GemmProblem& problem, int slices) {
  emulator::GemmPlan plan;
  plan.unit = {"sm_90", "wgmma.mma_async.sync.aligned.m64nNk32.s32.s8.s8"};
  plan.input = {formats::Rounding::toward_zero, slices, slices,
                emulator::InputConversion::Cut::slices};
  plan.epilogue.compute = plan.epilogue.output = formats::fp64;
  return values_of(run.multiply(plan, problem));
}

/// a . b to about 2^-100: products and sums as unevaluated pairs of FP64 numbers.
double accurate_dot(const Numbers& a, std::int64_t i, const Numbers& b, std::int64_t j,
                    double& magnitude, double& rest) {
  double high = 0, low = 0;
  magnitude = 0;
  for (std::int64_t k = 0; k < a.k; ++k) {
    const double x = a.at(i, k), y = b.at(j, k);
    const double product = x * y, error = std::fma(x, y, -product);
    const double sum = high + product, part = sum - high;
    low += ((high - (sum - part)) + (product - part)) + error;
    high = sum;
    magnitude += std::abs(product);
  }
  const double result = high + low;
  rest = (high - result) + low;
  return result;
}

/// Largest error over |A||B|: of FP64 multiply-adds, then of 1, 2, ... slices.
std::vector<double> errors_at(Run& run, std::int64_t size, std::int64_t k, std::int64_t range,
                              int most_slices) {
  const Numbers a = draw(run.draws("A"), run.draws("A exponents"), size, k, range);
  const Numbers b = draw(run.draws("B"), run.draws("B exponents"), size, k, range);
  emulator::GemmProblem problem;
  problem.a = emulator::make_matrix(formats::fp64, 1, size, k);
  problem.b = emulator::make_matrix(formats::fp64, 1, k, size);
  for (std::int64_t i = 0; i < size; ++i) {
    for (std::int64_t n = 0; n < k; ++n) {
      problem.a.set(problem.a.index(0, i, n), std::bit_cast<std::uint64_t>(a.at(i, n)));
      problem.b.set(problem.b.index(0, n, i), std::bit_cast<std::uint64_t>(b.at(i, n)));
    }
  }
  std::vector<double> exact, rests, magnitudes, fma;
  for (std::int64_t i = 0; i < size; ++i) {
    for (std::int64_t j = 0; j < size; ++j) {
      double magnitude = 0, rest = 0, sum = 0;
      exact.push_back(accurate_dot(a, i, b, j, magnitude, rest));
      rests.push_back(rest);
      magnitudes.push_back(magnitude);
      for (std::int64_t n = 0; n < k; ++n) sum = std::fma(a.at(i, n), b.at(j, n), sum);
      fma.push_back(sum);
    }
  }
  const auto error = [&](const std::vector<double>& d) {
    double largest = 0;
    for (std::size_t i = 0; i < d.size(); ++i)
      largest = std::max(largest, std::abs((d[i] - exact[i]) - rests[i]) / magnitudes[i]);
    return largest;
  };
  std::vector<double> result = {error(fma)};
  for (int count = 1; count <= most_slices; ++count)
    result.push_back(error(sliced_product(run, problem, count)));
  return result;
}

Outcome run(Run& run) {
  const Settings& s = run.settings();
  const auto ranges = s.integers("range");
  const int most = static_cast<int>(s.integer("slices"));
  run.announce(ranges.size());
  Outcome outcome;
  outcome.figure = {"E19: FP64 products from INT8 slices", "slices of 7 bits",
                    "accuracy (bits: -log2 of the largest |error| / (|A||B|))"};
  double before = 0, shrinks = 0;
  for (const std::int64_t range : ranges) {
    const std::string key = "exponents within " + std::to_string(range);
    const auto& errors = run.point(
        key, [&] { return errors_at(run, s.integer("MN"), s.integer("K"), range, most); });
    Curve curve{key};
    double needed = NAN;
    for (std::size_t count = 1; count < errors.size(); ++count) {
      curve.add(static_cast<double>(count), -std::log2(errors[count]));
      if (std::isnan(needed) && errors[count] <= errors[0]) needed = static_cast<double>(count);
    }
    outcome.figure.curves.push_back(curve);
    outcome.findings.push_back({key + ": FP64 multiply-adds", "bits", -std::log2(errors[0])});
    outcome.findings.push_back({key + ": " + std::to_string(most) + " slices over FP64, error", "",
                                errors.back() / errors[0],
                                Reference{.value = 1,
                                          .source = "arXiv 2306.11975, abstract: FP64 accuracy",
                                          .certainty = Certainty::read,
                                          .relation = Reference::Relation::at_most}});
    outcome.findings.push_back({key + ": slices needed for that", "", needed});
    if (needed < before) ++shrinks;
    before = needed;
  }
  outcome.findings.push_back({"wider ranges that need fewer slices", "", shrinks,
                              Reference{.source = "a row's small numbers lie in its last slices"}});
  return outcome;
}

}  // namespace

Experiment integer_slices() {
  using Kind = Parameter::Kind;
  return {
      .name = "E19",
      .slug = "integer_slices",
      .question = "How many INT8 slices does an FP64 product need?",
      .method =
          "FP64 numbers with exponents from a range are cut, row by row of A and column by column "
          "of "
          "B, into slices of 7 bits (Ozaki's first scheme); slices are multiplied exactly by a "
          "Hopper "
          "tensor core in INT8, the products added in FP64; the largest error over |A||B|, beside "
          "FP64 multiply-adds. The second scheme (CRT) is not built.",
      .expected =
          "FP64 accuracy is reached, with more slices the wider the range (arXiv 2306.11975, "
          "abstract "
          "read).",
      .parameters = {{"range", "exponents are uniform within this of 0, ascending", "0:24:8",
                      "0:8:8", Kind::integer, true, 0, 100},
                     {"slices", "at most", "16", "10", Kind::integer, false, 2, 20},
                     {"K", "products in each sum", "256", "64", Kind::integer, false, 1, 65536},
                     {"MN", "rows of A and columns of B", "32", "16", Kind::integer, false, 1,
                      512}},
      .run = run,
      .relations_only = true,
  };
}

}  // namespace guardbit::experiments
