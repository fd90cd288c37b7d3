#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "emulator/gemm/plan.hpp"
#include "emulator/gemm/problem.hpp"
#include "formats/format.hpp"

// Errors of products in experiments: a plan's result beside the FP64 product.
namespace guardbit::experiments {

class Run;

/// The numbers of a matrix, which FP64 must hold (FP64 itself, and everything narrower).
std::vector<double> values_of(const emulator::CodeMatrix& matrix);

/// The product in FP64 by one chain of multiply-adds: within K * 2^-53 of the sum of the products'
/// magnitudes, and without any error where that sum takes 53 bits at most (FP8 up to K = 2^16: a
/// product is a multiple of 2^-18 below 2^18 of E4M3).
emulator::GemmPlan exact_plan();

/// What numbers of A and of B count as at least where they are not zero.
struct LeastMagnitudes {
  double a = 0, b = 0;
};
/// |A||B|: what componentwise error bounds are relative to.
std::vector<double> magnitude_products(Run& run, const emulator::GemmProblem& problem,
                                       const std::optional<LeastMagnitudes>& least = {});

/// Square results of random matrices.
struct RandomProduct {
  /// of A and B
  formats::Format format;
  /// one of distribution_names
  std::string distribution;
  /// rows of A, columns of B
  std::int64_t size = 0;
  std::int64_t k = 0;
};
/// The largest |error| / (|A||B|) that the plan makes of one.
double largest_error_share(Run& run, const emulator::GemmPlan& plan, const RandomProduct& x);

}  // namespace guardbit::experiments
