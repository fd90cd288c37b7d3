#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "emulator/gemm/plan.hpp"
#include "emulator/gemm/problem.hpp"
#include "experiments/harness/experiment.hpp"
#include "formats/format.hpp"

namespace guardbit::experiments {

class Run;

/// The numbers of a matrix, which FP64 must hold (FP64 itself, and everything narrower).
std::vector<double> values_of(const emulator::CodeMatrix& matrix);

/// How far numbers lie from what they should be.
struct Errors {
  std::size_t count = 0;
  double largest = 0;             ///< |x - exact|
  double mean_exact = 0;          ///< mean of |exact|
  double largest_exact = 0;       ///< largest |exact|
  double largest_relative = 0;    ///< largest |x - exact| / |exact|, of an exact other than zero
  double mean_signed = 0;         ///< mean of x - exact
  double mean_squared = 0;        ///< of x - exact
  double mean_squared_exact = 0;  ///< of exact

  /// The largest error over the mean magnitude.
  double largest_over_mean() const { return largest / mean_exact; }
  /// What the sum of all loses, as a share of the sum of magnitudes.
  double bias() const { return mean_signed / mean_exact; }
};

Errors errors_of(const std::vector<double>& numbers, const std::vector<double>& exact);

/// The product in FP64 by one chain of multiply-adds: within K * 2^-53 of the sum of the products'
/// magnitudes, and without any error where that sum takes 53 bits at most (FP8 up to K = 2^16: a
/// product is a multiple of 2^-18 below 2^18 of E4M3).
emulator::GemmPlan exact_plan();

/// |A||B|: what componentwise error bounds are relative to.
std::vector<double> magnitude_products(Run& run, const emulator::GemmProblem& problem);

/// The largest |number - exact| / scale.
double largest_share(const std::vector<double>& numbers, const std::vector<double>& exact,
                     const std::vector<double>& scale);

/// Square results of random matrices.
struct RandomProduct {
  formats::Format format;    ///< of A and B
  std::string distribution;  ///< one of distribution_names
  std::int64_t size = 0;     ///< rows of A, columns of B
  std::int64_t k = 0;
};
/// The largest |error| / (|A||B|) that the plan makes of one.
double largest_error_share(Run& run, const emulator::GemmPlan& plan, const RandomProduct& x);

/// The same statistic of runs with other random numbers.
struct Repeats {
  std::vector<double> values;

  double median() const;
  /// Standard deviation of the difference between the mean and one more value.
  double spread_of_one_more() const;
};

/// A figure of one run elsewhere, with other random numbers. It may lie as far from the median as
/// half a unit of its last digit and three standard deviations of one more repeat, as a share of
/// the smaller of the two numbers: otherwise a unit that errs by twice as much would also scatter
/// by twice as much, and pass. `by` is who printed it ("recorded").
Reference reference_of_repeats(std::string_view printed, const Repeats& measured,
                               std::string_view by);

/// A number as it was printed ("-0.52"), and half a unit of its last digit (0.005).
double number_of(std::string_view printed);
double half_digit(std::string_view printed);

}  // namespace guardbit::experiments
