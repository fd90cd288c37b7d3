#pragma once

#include <functional>
#include <optional>
#include <string>

#include "emulator/functions/activation.hpp"
#include "emulator/gemm/plan.hpp"
#include "emulator/gemm/problem.hpp"
#include "formats/tensors/tensor.hpp"
#include "tools/products/error_report.hpp"

// A result beside what it should be: another one, or the exact product of its operands.
namespace guardbit::tools {

/// A result with what it was computed from, where that is known.
struct ComparedResult {
  emulator::CodeMatrix d;
  std::optional<emulator::GemmProblem> problem;
  std::optional<emulator::GemmPlan> plan;
  double alpha = 1, beta = 0;
  emulator::Activation activation = {};
  /// what errors and the report call it
  std::string where;
};

/// A tensor as a matrix: a number is one element, a vector one row; of more dimensions the last two
/// are rows and columns.
emulator::CodeMatrix result_matrix(const formats::Tensor& tensor);

/// formats::Error unless D is of the shape of A * B.
void require_shape_of_product(const ComparedResult& x);

/// Factors that stand in place of others.
struct GivenFactors {
  std::optional<double> alpha, beta;
};

/// Sets the factors, and the plan where there is one; `plan_says`: without given ones its own
/// factors are what was asked for. formats::Error where D is no result of the plan.
void set_plan(ComparedResult& x, const std::string& plan, bool plan_says,
              const GivenFactors& given);

/// How far it is from the reference, or from the exact product where there is none; without
/// deviations when `go_on` answered false.
ErrorReport error_report(const ComparedResult& x,
                         const std::optional<emulator::CodeMatrix>& reference, int threads,
                         const std::function<bool(double done)>& go_on);

}  // namespace guardbit::tools
