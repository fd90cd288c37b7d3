#include "experiments/accuracy/product_errors.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <string>

#include "emulator/gemm/scalar.hpp"
#include "experiments/accuracy/error_norms.hpp"
#include "experiments/harness/run.hpp"

namespace guardbit::experiments {

namespace {

/// |x| in the matrix's own format or, where there is a least one, in FP64.
emulator::CodeMatrix magnitudes_of(const emulator::CodeMatrix& matrix,
                                   std::optional<double> least) {
  emulator::CodeMatrix result = matrix;
  if (least)
    result = emulator::make_matrix(formats::fp64, matrix.batch, matrix.rows, matrix.columns);
  for (std::int64_t i = 0; i < matrix.size(); ++i) {
    if (!least) {
      result.set(i, matrix[i] & formats::magnitude_mask(matrix.format));
      continue;
    }
    const double x = std::abs(emulator::scalar::decoded(matrix.format, matrix[i]));
    result.set(i, std::bit_cast<std::uint64_t>(x == 0 ? 0 : std::max(x, *least)));
  }
  return result;
}

}  // namespace

std::vector<double> values_of(const emulator::CodeMatrix& matrix) {
  std::vector<double> values(static_cast<std::size_t>(matrix.size()));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = emulator::scalar::decoded(matrix.format, matrix[static_cast<std::int64_t>(i)]);
  return values;
}

emulator::GemmPlan exact_plan() {
  emulator::GemmPlan plan;
  plan.unit = {"simt", "fma.fp64"};
  plan.epilogue.compute = plan.epilogue.output = formats::fp64;
  return plan;
}

std::vector<double> magnitude_products(Run& run, const emulator::GemmProblem& problem,
                                       const std::optional<LeastMagnitudes>& least) {
  emulator::GemmProblem absolute = problem;
  absolute.a = magnitudes_of(problem.a, least ? std::optional(least->a) : std::nullopt);
  absolute.b = magnitudes_of(problem.b, least ? std::optional(least->b) : std::nullopt);
  return values_of(run.multiply(exact_plan(), absolute));
}

double largest_error_share(Run& run, const emulator::GemmPlan& plan, const RandomProduct& x) {
  const Distribution numbers = distribution_of(x.distribution);
  emulator::GemmProblem problem;
  problem.a = run.draws("A").matrix(x.format, x.size, x.k, numbers, run.threads());
  problem.b = run.draws("B").matrix(x.format, x.k, x.size, numbers, run.threads());
  const auto d = values_of(run.multiply(plan, problem));
  const auto exact = values_of(run.multiply(exact_plan(), problem));
  return largest_share(d, exact, magnitude_products(run, problem));
}

}  // namespace guardbit::experiments
