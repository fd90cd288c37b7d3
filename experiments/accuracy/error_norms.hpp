#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "experiments/accuracy/error_bounds.hpp"
#include "experiments/accuracy/forward_errors.hpp"

// Norms of errors: relative errors, signal to noise, ulps, and where in a result the errors lie.
namespace guardbit::experiments {

/// Errors added up beside what they are errors of: what every norm below is made of.
struct ErrorTally {
  /// errors; those of a reference other than zero
  std::int64_t count = 0, nonzero = 0;
  /// |error|
  double largest = 0;
  /// |error| / |reference|, where that is not zero
  double largest_relative = 0;
  double largest_reference = 0;
  double sum = 0, sum_signed = 0, sum_relative = 0, sum_reference = 0;

  void add(double error, double reference);
};

/// How far numbers lie from what they should be.
struct Errors {
  std::size_t count = 0;
  /// |x - exact|
  double largest = 0;
  /// mean of |exact|
  double mean_exact = 0;
  /// largest |exact|
  double largest_exact = 0;
  /// largest |x - exact| / |exact|, of an exact other than zero
  double largest_relative = 0;
  /// mean of x - exact
  double mean_signed = 0;
  /// of x - exact
  double mean_squared = 0;
  /// of exact
  double mean_squared_exact = 0;

  /// The largest error over the mean magnitude.
  double largest_over_mean() const { return largest / mean_exact; }
  /// What the sum of all loses, as a share of the sum of magnitudes.
  double bias() const { return mean_signed / mean_exact; }
};

Errors errors_of(const std::vector<double>& numbers, const std::vector<double>& exact);

/// The largest |number - exact| / scale.
double largest_share(const std::vector<double>& numbers, const std::vector<double>& exact,
                     const std::vector<double>& scale);

/// Elements that are an infinity or a NaN on one side or both; they are in no other figure.
struct SpecialCounts {
  std::int64_t nan_both = 0, nan_result = 0, nan_reference = 0;
  /// An infinite element where the reference is the same infinity, or rounds to it in D's format.
  std::int64_t infinity_both = 0;
  /// elsewhere
  std::int64_t infinity_result = 0, infinity_reference = 0;

  /// Elements that are special on one side alone.
  std::int64_t disagreements() const {
    return nan_result + nan_reference + infinity_result + infinity_reference;
  }
};

/// How often a bound is met: the largest error as a part of the bound, 0 where nothing is compared.
struct BoundCheck {
  double largest_part = 0;
  /// elements that the bound says something about
  std::int64_t judged = 0;
  bool holds() const { return largest_part <= 1; }
};

/// What deviations say. `largest_*` and `mean_*` are over the compared elements.
struct ErrorAnalysis {
  std::int64_t outputs = 0, compared = 0;
  SpecialCounts specials;
  /// no error
  std::int64_t equal = 0;
  /// among them the equal ones
  std::int64_t within_half_ulp = 0;
  double largest_ulps = 0, mean_ulps = 0, root_mean_square_ulps = 0;
  /// where the reference is not 0
  double largest_relative = 0, mean_relative = 0;
  /// magnitudes
  double largest_error = 0, mean_error = 0;
  /// norm of the errors by that of the reference
  double frobenius = 0;
  /// largest error by the mean magnitude of the reference
  double largest_by_mean = 0;
  /// |error| / (|A| |B|)
  std::optional<double> largest_componentwise, mean_componentwise;
  /// signed means
  double bias_error = 0, bias_ulps = 0;
  /// sum of the errors by the sum of the reference's magnitudes
  double bias_relative = 0;
  /// the same of |result| - |reference|: negative toward zero
  double bias_magnitude = 0;
  /// the element with most ulps, or a disagreeing special; none of equal results
  std::optional<std::int64_t> worst;
  std::optional<BoundCheck> deterministic, probabilistic;
};

/// `sums`: what `magnitudes` gives, or nothing; `bound` with the magnitudes that it asks for.
ErrorAnalysis analyse(const Deviations& deviations, const formats::Format& d,
                      const std::vector<double>& sums, const std::optional<ErrorBound>& bound,
                      const std::vector<double>& bound_sums);

/// The largest error of each tile of a result, row-major: in ulp, or as a part of `sums` where
/// there are any. Infinity where a special disagrees, NaN where nothing is compared.
struct HeatMap {
  std::int64_t tile_rows = 0, tile_columns = 0;
  /// tiles
  std::int64_t rows = 0, columns = 0;
  std::vector<double> largest;
};

/// At most so many tiles of whole powers of two elements for one batch entry.
HeatMap heat_map(const Deviations& deviations, const emulator::CodeMatrix& d,
                 const std::vector<double>& sums, std::int64_t batch, std::int64_t most_rows,
                 std::int64_t most_columns);

}  // namespace guardbit::experiments
