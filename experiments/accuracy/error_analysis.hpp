#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "experiments/accuracy/deviation.hpp"
#include "experiments/accuracy/error_bounds.hpp"

namespace guardbit::experiments {

/// Elements that are an infinity or a NaN on one side or both; they are in no other figure.
struct SpecialCounts {
  std::int64_t nan_both = 0, nan_result = 0, nan_reference = 0;
  /// An infinite element where the reference is the same infinity, or rounds to it in D's format.
  std::int64_t infinity_both = 0;
  std::int64_t infinity_result = 0, infinity_reference = 0;  ///< elsewhere

  /// Elements that are special on one side alone.
  std::int64_t disagreements() const {
    return nan_result + nan_reference + infinity_result + infinity_reference;
  }
};

/// How often a bound is met: the largest error as a part of the bound, 0 where nothing is compared.
struct BoundCheck {
  double largest_part = 0;
  bool holds() const { return largest_part <= 1; }
};

/// What a list of deviations says. `largest_*` and `mean_*` are over the compared elements.
struct ErrorAnalysis {
  std::int64_t outputs = 0, compared = 0;
  SpecialCounts specials;
  std::int64_t equal = 0;            ///< no error
  std::int64_t within_half_ulp = 0;  ///< among them the equal ones
  double largest_ulps = 0, mean_ulps = 0, root_mean_square_ulps = 0;
  double largest_relative = 0, mean_relative = 0;  ///< where the reference is not 0
  double largest_error = 0, mean_error = 0;        ///< magnitudes
  double frobenius = 0;                            ///< norm of the errors by that of the reference
  double largest_by_mean = 0;  ///< largest error by the mean magnitude of the reference
  std::optional<double> largest_componentwise, mean_componentwise;  ///< |error| / (|A| |B|)
  double bias_error = 0, bias_ulps = 0;                             ///< signed means
  double bias_relative = 0;   ///< sum of the errors by the sum of the reference's magnitudes
  double bias_magnitude = 0;  ///< the same of |result| - |reference|: negative toward zero
  std::optional<std::int64_t> worst;  ///< the element with most ulps, or a disagreeing special
  std::optional<BoundCheck> deterministic, probabilistic;
};

/// `sums`: what `magnitudes` gives, or nothing; `bound` with the magnitudes that it asks for.
ErrorAnalysis analyse(const std::vector<Deviation>& deviations, const formats::Format& d,
                      const std::vector<double>& sums, const std::optional<ErrorBound>& bound,
                      const std::vector<double>& bound_sums);

/// The largest error of each tile of a result, row-major: in ulp, or as a part of `sums` where
/// there are any. Infinity where a special disagrees, NaN where nothing is compared.
struct HeatMap {
  std::int64_t tile_rows = 0, tile_columns = 0;
  std::int64_t rows = 0, columns = 0;  ///< tiles
  std::vector<double> largest;
};

/// At most so many tiles of whole powers of two elements for one batch entry.
HeatMap heat_map(const std::vector<Deviation>& deviations, const emulator::CodeMatrix& d,
                 const std::vector<double>& sums, std::int64_t batch, std::int64_t most_rows,
                 std::int64_t most_columns);

}  // namespace guardbit::experiments
