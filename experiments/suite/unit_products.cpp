#include "experiments/suite/unit_products.hpp"

#include <algorithm>
#include <cmath>

#include "emulator/catalogue/instruction_catalogue.hpp"
#include "experiments/accuracy/error_bounds.hpp"
#include "experiments/accuracy/product_errors.hpp"
#include "formats/format_catalogue.hpp"

namespace guardbit::experiments {

namespace {

using emulator::CodeMatrix;
using emulator::GemmProblem;

/// Columns of `matrix` (rows, where `of_rows`) as `order` says.
CodeMatrix taken(const CodeMatrix& matrix, std::span<const std::int64_t> order, bool of_rows) {
  const auto length = std::ssize(order);
  CodeMatrix result =
      emulator::make_matrix(matrix.format, matrix.batch, of_rows ? length : matrix.rows,
                            of_rows ? matrix.columns : length);
  for (std::int64_t i = 0; i < result.rows; ++i) {
    for (std::int64_t j = 0; j < result.columns; ++j) {
      const std::int64_t k = order[static_cast<std::size_t>(of_rows ? i : j)];
      if (k >= 0) result.set(result.index(0, i, j), of_rows ? matrix(0, k, j) : matrix(0, i, k));
    }
  }
  return result;
}

}  // namespace

int block_of(const emulator::MatrixInstruction& instruction) {
  const int terms = instruction.steps.list[0].spec.terms;
  return terms == 0 ? instruction.shape.k : std::min(terms, instruction.shape.k);
}

UnitUnderTest unit_of(const emulator::MatrixInstruction& instruction, std::string name) {
  using emulator::Summation;
  UnitUnderTest unit{std::move(name), instruction.a, {}};
  unit.plan.unit = {std::string(instruction.arch), std::string(std::string_view(instruction.name))};
  unit.plan.epilogue.output = instruction.d;
  if (instruction.d == formats::int32) unit.plan.epilogue.compute = formats::int32;
  const emulator::AccumulatorSpec& spec = instruction.steps.list[0].spec;
  unit.block = block_of(instruction);
  unit.exact = spec.summation == Summation::integer;
  unit.multiply_adds = spec.summation == Summation::fma_chain;
  if (unit.multiply_adds || spec.summation == Summation::pairwise) unit.block = 1;
  unit.truncates = instruction.steps.count == 1 && spec.summation == Summation::fused &&
                   spec.alignment == formats::Rounding::toward_zero &&
                   spec.result == formats::Rounding::toward_zero;
  return unit;
}

std::vector<UnitUnderTest> units_under_test() {
  const auto on = [](const char* arch, const char* family, const formats::Format& inputs,
                     const formats::Format& result, const char* name) {
    return unit_of(emulator::require_dot(arch, family, inputs, result, 4, name), name);
  };
  UnitUnderTest simt{"simt_fp32", formats::fp32, {}};
  simt.multiply_adds = true;
  using formats::fp16, formats::fp32;
  return {simt,
          on("sm_70", "mma.sync", fp16, fp32, "sm_70_fp16"),
          on("sm_80", "mma.sync", fp16, fp32, "sm_80_fp16"),
          on("sm_90", "wgmma", fp16, fp32, "sm_90_fp16"),
          on("sm_90", "wgmma", formats::e4m3, fp32, "sm_90_e4m3"),
          on("sm_80", "mma.sync", formats::int8, formats::int32, "sm_80_int8")};
}

GemmProblem random_problem(const Run& run, const formats::Format& format, std::int64_t m,
                           std::int64_t n, std::int64_t k, Distribution numbers) {
  const float factor = formats::is_integer(format) ? 32 : 1;
  GemmProblem problem;
  problem.a = run.draws("A").matrix(format, m, k, numbers, run.threads(), factor);
  problem.b = run.draws("B").matrix(format, k, n, numbers, run.threads(), factor);
  return problem;
}

GemmProblem reordered(const GemmProblem& problem, std::span<const std::int64_t> order) {
  GemmProblem result;
  result.a = taken(problem.a, order, false);
  result.b = taken(problem.b, order, true);
  return result;
}

double changed_outputs(const CodeMatrix& x, const CodeMatrix& y) {
  std::int64_t changed = 0;
  for (std::int64_t i = 0; i < x.size(); ++i) changed += x[i] == y[i] ? 0 : 1;
  return static_cast<double>(changed);
}

std::vector<double> allowed_errors(Run& run, const emulator::GemmPlan& plan,
                                   const GemmProblem& problem) {
  const ErrorBound bound = error_bound(plan, problem, "experiment");
  const std::vector<double> exact = values_of(run.multiply(exact_plan(), problem));
  std::vector<double> allowed =
      magnitude_products(run, problem, LeastMagnitudes{bound.least_a, bound.least_b});
  for (std::size_t i = 0; i < allowed.size(); ++i) {
    const double sum = bound.sum * allowed[i];
    allowed[i] = sum + bound.last * (std::abs(exact[i]) + sum) + bound.absolute;
  }
  return allowed;
}

}  // namespace guardbit::experiments
