#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>
#include <vector>

#include "experiments/accuracy/product_errors.hpp"
#include "experiments/harness/run.hpp"
#include "experiments/suite/residue_products.hpp"
#include "experiments/suite/suite.hpp"

namespace guardbit::experiments {

namespace e19 {
namespace {

using Numbers = NumberRows;

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

/// Operands, and what their product is.
struct Problem {
  Numbers a, b;
  std::vector<double> exact, rests, magnitudes, fma;

  /// The largest error over |A||B|.
  double error(const std::vector<double>& d) const {
    double largest = 0;
    for (std::size_t i = 0; i < d.size(); ++i)
      largest = std::max(largest, std::abs((d[i] - exact[i]) - rests[i]) / magnitudes[i]);
    return largest;
  }
};

Problem problem_of(Run& run, std::int64_t range) {
  const std::int64_t size = run.settings().integer("MN"), k = run.settings().integer("K");
  Problem x;
  x.a = draw(run.draws("A"), run.draws("A exponents"), size, k, range);
  x.b = draw(run.draws("B"), run.draws("B exponents"), size, k, range);
  for (std::int64_t i = 0; i < size; ++i) {
    for (std::int64_t j = 0; j < size; ++j) {
      double magnitude = 0, rest = 0, sum = 0;
      x.exact.push_back(accurate_dot(x.a, i, x.b, j, magnitude, rest));
      x.rests.push_back(rest);
      x.magnitudes.push_back(magnitude);
      for (std::int64_t n = 0; n < k; ++n) sum = std::fma(x.a.at(i, n), x.b.at(j, n), sum);
      x.fma.push_back(sum);
    }
  }
  return x;
}

emulator::GemmProblem matrices_of(const Problem& x) {
  const std::int64_t size = x.a.rows, k = x.a.k;
  emulator::GemmProblem problem;
  problem.a = emulator::make_matrix(formats::fp64, 1, size, k);
  problem.b = emulator::make_matrix(formats::fp64, 1, k, size);
  for (std::int64_t i = 0; i < size; ++i) {
    for (std::int64_t n = 0; n < k; ++n) {
      problem.a.set(problem.a.index(0, i, n), std::bit_cast<std::uint64_t>(x.a.at(i, n)));
      problem.b.set(problem.b.index(0, n, i), std::bit_cast<std::uint64_t>(x.b.at(i, n)));
    }
  }
  return problem;
}

/// Largest error over |A||B|: of FP64 multiply-adds, then of 1, 2, ... slices.
std::vector<double> slice_errors(Run& run, const Problem& x, int most_slices) {
  const emulator::GemmProblem problem = matrices_of(x);
  std::vector<double> result = {x.error(x.fma)};
  for (int count = 1; count <= most_slices; ++count)
    result.push_back(x.error(sliced_product(run, problem, count)));
  return result;
}

/// Sums that residues got wrong, then the largest errors of 2, 3, ... moduli.
std::vector<double> residue_errors(Run& run, const Problem& x, int most) {
  std::vector<double> result = {0};
  for (int count = 2; count <= most; ++count) {
    const ResidueProduct product = residue_product(run, x.a, x.b, count);
    result[0] += static_cast<double>(product.wrong);
    result.push_back(x.error(product.numbers));
  }
  return result;
}

/// The curve of the accuracies of `first`, first + 1, ... products; how many reach `wanted`, or
/// NaN.
double add_curve(Outcome& outcome, const std::string& name, const std::vector<double>& errors,
                 int first, double wanted) {
  Curve curve{name};
  double needed = NAN;
  for (std::size_t i = 1; i < errors.size(); ++i) {
    const double count = first + static_cast<double>(i) - 1;
    curve.add(count, -std::log2(errors[i]));
    if (std::isnan(needed) && errors[i] <= wanted) needed = count;
  }
  outcome.figure.curves.push_back(curve);
  return needed;
}

Outcome run(Run& run) {
  const Settings& s = run.settings();
  const auto ranges = s.integers("range");
  const int most = static_cast<int>(s.integer("slices"));
  const int moduli = static_cast<int>(s.integer("moduli"));
  run.announce(2 * ranges.size());
  Outcome outcome;
  outcome.figure = {"E19: FP64 products from INT8 products", "slices of 7 bits, or moduli",
                    "bits: -log2 of the largest |error| / (|A||B|)"};
  double before = 0, shrinks = 0;
  const auto reaches = [](const char* source, bool enough) {
    return Reference{.value = 1,
                     .source = source,
                     .certainty = Certainty::read,
                     .relation = Reference::Relation::at_most,
                     .undecidable = enough ? "" : "too few to hold what FP64 does"};
  };
  const double k_bits = std::log2(s.number("K"));
  for (const std::int64_t range : ranges) {
    const std::string key = "exponents within " + std::to_string(range);
    std::optional<Problem> problem;
    const auto operands = [&]() -> const Problem& {
      if (!problem) problem = problem_of(run, range);
      return *problem;
    };
    const auto& errors = run.point(key, [&] { return slice_errors(run, operands(), most); });
    const auto& residues =
        run.point(key + ", residues", [&] { return residue_errors(run, operands(), moduli); });
    const double slices = add_curve(outcome, key, errors, 1, errors[0]);
    const double needed = add_curve(outcome, key + ", residues", residues, 2, errors[0]);
    outcome.findings.insert(
        outcome.findings.end(),
        {{key + ": FP64 multiply-adds", "bits", -std::log2(errors[0])},
         {key + ": " + std::to_string(most) + " slices over FP64, error", "",
          errors.back() / errors[0],
          // A row's numbers lie up to 2 * range apart, each with 53 bits.
          reaches("arXiv 2306.11975, abstract: FP64 accuracy",
                  7 * std::int64_t{most} >= 53 + 2 * range)},
         {key + ": slices needed for that", "", slices},
         {key + ": INT8 products of those slices", "", slices * (slices + 1) / 2},
         {key + ": moduli needed for that, one INT8 product each", "", needed},
         {key + ": sums that residues get wrong", "", residues[0],
          Reference{.source = "Chinese remainder theorem: none below half the moduli's product"}}});
    if (range == 0)
      outcome.findings.push_back(
          {key + ": " + std::to_string(moduli) + " moduli over FP64, error", "",
           residues.back() / errors[0],
           // Sums of K products of two numbers of 53 bits, and a sign;
           // moduli are just below 256.
           reaches("arXiv 2504.08009, abstract: FP64 accuracy", 7.8 * moduli >= 107 + k_bits)});
    if (slices < before) ++shrinks;
    before = slices;
  }
  outcome.findings.push_back({"wider ranges that need fewer slices", "", shrinks,
                              Reference{.source = "a row's small numbers lie in its last slices"}});
  return outcome;
}

}  // namespace
}  // namespace e19

Experiment integer_slices() {
  using namespace e19;
  using Kind = Parameter::Kind;
  return {
      .name = "E19",
      .slug = "integer_slices",
      .question = "How many INT8 slices does an FP64 product need?",
      .method =
          "FP64 numbers with exponents from a range are cut, "
          "row by row of A and column by column of B, into slices of 7 bits (Ozaki's first scheme); "
          "slices are multiplied exactly by a Hopper tensor core in INT8, the products added in FP64; "
          "the largest error over |A||B|, beside FP64 multiply-adds. "
          "In the second scheme rows and columns become integers, multiplied modulo numbers up to 256; "
          "the remainder theorem gives their product, which is compared with 128-bit sums.",
      .expected =
          "FP64 accuracy is reached, with more slices the wider the range (arXiv 2306.11975, abstract read).",
      .parameters = {{"range", "exponents are uniform within this of 0, ascending", "0:24:8",
                      "0:8:8", Kind::integer, true, 0, 100},
                     {"slices", "at most", "16", "10", Kind::integer, false, 2, 20},
                     {"moduli", "at most", "18", "15", Kind::integer, false, 2, most_moduli},
                     {"K", "products in each sum", "256", "64", Kind::integer, false, 1, 65536},
                     {"MN", "rows of A and columns of B", "32", "16", Kind::integer, false, 1,
                      512}},
      .run = run,
  };
}

}  // namespace guardbit::experiments
