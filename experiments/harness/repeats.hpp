#pragma once

#include <string_view>
#include <vector>

#include "experiments/harness/experiment.hpp"

// Figures of others that were measured with other random numbers.
namespace guardbit::experiments {

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
