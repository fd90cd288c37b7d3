#pragma once

#include <cstdint>
#include <limits>
#include <string_view>

#include "emulator/gemm/plan.hpp"
#include "emulator/gemm/problem.hpp"

// Error bounds say how far a plan's result can be from the exact one, before anything is computed:
// the analysis of block fused multiply-adds of Blanchard, Higham, Lopez, Mary and Pranesh (SIAM J.
// Sci. Comput. 42, 2020) on the plan's own blocks, kept bits, roundings and reductions, and its
// probabilistic form (Higham and Mary, SIAM J. Sci. Comput. 41, 2019).
namespace guardbit::experiments {

/// |D - exact| <= sum * S + last * (|exact| + sum * S) + absolute, elementwise, where S is the
/// product of the magnitudes, |alpha| |A| |B| + |beta| |C| + |bias|, with factors below `least_a`
/// and `least_b` counted as these. It holds where S is `largest_sum` at most and the exact result
/// no larger than D's largest number: beyond, something on the way may overflow, and D hide it.
struct ErrorBound {
  /// relative to S: conversions, accumulation, reduction, epilogue
  double sum = 0;
  /// in place of `sum`, with probability `confidence` for all outputs
  double likely = 0;
  /// rounding into D's format
  double last = 0;
  /// what underflow, subnormal operands that count as zero, and cut slices add
  double absolute = 0;
  double least_a = 0, least_b = 0;
  double largest_sum = std::numeric_limits<double>::infinity();
  double confidence = 0, lambda = 0;
  /// Are the errors of mean zero? Truncation toward zero makes sums of one sign drift, and then
  /// the probabilistic bound need not hold.
  bool mean_zero = true;
};

/// formats::Error, beginning with `where`, for a unit that is not known, and for a plan whose
/// result is not alpha A B + beta C + bias.
ErrorBound error_bound(const emulator::GemmPlan& plan, const emulator::GemmProblem& problem,
                       std::string_view where);

}  // namespace guardbit::experiments
