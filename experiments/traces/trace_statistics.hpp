#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "experiments/accuracy/exact_sum.hpp"
#include "experiments/scaling/recipe_statistics.hpp"
#include "experiments/traces/magnitude_counts.hpp"

namespace guardbit::experiments {

/// What a Storing does to the elements: how many numbers other than zero become zero, how many
/// become subnormal, how many finite ones lie past the largest (and become whatever the overflow
/// policy says); and the sums of |x| and x^2 of those that become zero.
struct StoringOutcome {
  std::uint64_t underflow = 0, subnormal = 0, overflow = 0;
  ExactSum lost{lowest_magnitude}, lost_squares{lowest_square};

  void add(const StoringOutcome& other);
  friend bool operator==(const StoringOutcome&, const StoringOutcome&) = default;
};

/// Statistics of a tensor or of any number of them; all exact, so they add up in any order.
struct TraceStatistics {
  std::uint64_t elements = 0, zeros = 0, subnormals = 0, infinities = 0, nans = 0;
  /// of the finite numbers
  std::optional<double> amax;
  /// of the finite numbers other than zero
  std::optional<double> amin_nonzero;
  /// of the finite numbers
  ExactSum sum{lowest_magnitude}, squares{lowest_square};
  /// floor(log2 |x|) of finite numbers other than zero
  std::map<int, std::uint64_t> binades;
  /// of each Storing
  std::vector<StoringOutcome> outcomes;
  RecipeStatistics recipes;

  std::uint64_t nonzero() const { return elements - zeros - infinities - nans; }
  void add(const TraceStatistics& other);
  /// The binade that holds the number of that rank among the finite ones other than zero in
  /// ascending order: the least binade at or below which lies at least `fraction` of them.
  std::optional<int> percentile(double fraction) const;

  friend bool operator==(const TraceStatistics&, const TraceStatistics&) = default;
};

TraceStatistics statistics_of(const MagnitudeCells& cells, const MagnitudeCounts& counts,
                              std::size_t storings);

/// The scales at which nothing overflows and at most `tolerance` of the numbers other than zero
/// become zero. Underflow falls and overflow grows with the scale, so they are neighbours.
struct ScaleWindow {
  /// log2; of the scales that were tried
  std::optional<int> first, last;
  /// The smallest scale that loses least among those at which nothing overflows.
  std::optional<int> recommended;
};

/// The outcomes of one format, by the scale's logarithm in ascending order.
ScaleWindow scale_window(const std::map<int, const StoringOutcome*>& by_scale,
                         std::uint64_t nonzero, double tolerance);

}  // namespace guardbit::experiments
