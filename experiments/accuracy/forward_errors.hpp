#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "emulator/gemm/plan.hpp"
#include "emulator/gemm/problem.hpp"

// Forward errors: each element of a result beside its exact value.
namespace guardbit::experiments {

/// Each element of a result beside what it should be. All numbers are the nearest doubles to the
/// exact ones; where the element or the reference is an infinity or a NaN, error and ulps are NaN.
struct Deviation {
  double result = 0;
  double reference = 0;
  /// result - reference
  double error = 0;
  /// the error in units of the reference's last place in D's format
  double ulps = 0;
};

/// Result after result in the order of `d`, which has the shape of the reference.
/// formats::Error, beginning with `where`, for a format that FP64 does not contain.
std::vector<Deviation> deviations(const emulator::CodeMatrix& d,
                                  const emulator::CodeMatrix& reference, std::string_view where);

/// The same against alpha * A * B + beta * C + bias as exact numbers, with the problem's scales,
/// through the activation.
/// `progress` is told now and then which part is done, and ends the work by answering false; then
/// the list is empty.
std::vector<Deviation> exact_deviations(const emulator::CodeMatrix& d,
                                        const emulator::GemmProblem& problem, double alpha,
                                        double beta, int threads, std::string_view where,
                                        const std::function<bool(double)>& progress = {},
                                        emulator::Activation activation = {});

/// |alpha| |A| |B| + |beta| |C| + |bias| for each output, in FP64. Of A's elements that are not
/// zero none counts as less than `least_a`, of B's `least_b`.
std::vector<double> magnitudes(const emulator::GemmProblem& problem, double alpha, double beta,
                               int threads, std::string_view where, double least_a = 0,
                               double least_b = 0);

}  // namespace guardbit::experiments
