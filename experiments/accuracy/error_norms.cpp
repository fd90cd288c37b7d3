#include "experiments/accuracy/error_norms.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>

#include "experiments/accuracy/roundings.hpp"
#include "formats/codec.hpp"

namespace guardbit::experiments {

namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();

bool is_compared(const Deviation& x) {
  return std::isfinite(x.result) && std::isfinite(x.reference);
}

/// Does a finite reference round to an infinity in the format? Halfway past the largest number.
bool overflows(double reference, const formats::Format& f) {
  if (!formats::has_infinity(f)) return false;
  const double limit =
      std::ldexp(2 - std::ldexp(1.0, -f.fraction_bits - 1), formats::max_exponent(f));
  return std::fabs(reference) >= limit;
}

bool disagrees(const Deviation& x, const formats::Format& f) {
  if (std::isnan(x.result) || std::isnan(x.reference))
    return std::isnan(x.result) != std::isnan(x.reference);
  if (std::isinf(x.reference)) return x.result != x.reference;
  return std::isinf(x.result) &&
         !(overflows(x.reference, f) && std::signbit(x.result) == std::signbit(x.reference));
}

void count_special(const Deviation& x, const formats::Format& f, SpecialCounts& counts) {
  if (std::isnan(x.result) || std::isnan(x.reference)) {
    ++(std::isnan(x.result) == std::isnan(x.reference) ? counts.nan_both
       : std::isnan(x.result)                          ? counts.nan_result
                                                       : counts.nan_reference);
  } else if (!disagrees(x, f)) {
    ++counts.infinity_both;
  } else {
    ++(std::isinf(x.result) ? counts.infinity_result : counts.infinity_reference);
  }
}

/// An error as a part of its bound; nothing is a part of nothing.
double part_of(double error, double bound) {
  if (error == 0) return 0;
  return bound > 0 ? error / bound : infinite;
}

void check(const Deviation& x, const ErrorBound& bound, double sum, ErrorAnalysis& result) {
  if (sum > bound.largest_sum) return;
  const auto limit = [&](double relative) {
    const double of_sum = relative * sum;
    return of_sum + bound.last * (std::fabs(x.reference) + of_sum) + bound.absolute;
  };
  // One unit in the last place of FP64 for what was computed in FP64 here.
  const double error = std::fabs(x.error) * (1 - 0x1p-50);
  double& worst = result.deterministic->largest_part;
  worst = std::max(worst, part_of(error, limit(bound.sum)));
  double& likely = result.probabilistic->largest_part;
  likely = std::max(likely, part_of(error, limit(bound.likely)));
  ++result.deterministic->judged, ++result.probabilistic->judged;
}

/// Sums whose means and quotients are the figures.
struct Totals {
  ErrorTally errors;
  double ulps = 0, square_ulps = 0, signed_ulps = 0, shrinking = 0;
  // Squares of FP64's largest and smallest numbers are none of its numbers.
  long double square_error = 0, square_reference = 0;
  double componentwise = 0;

  void add(const Deviation& x) {
    const double size = std::fabs(x.error), of = std::fabs(x.reference);
    errors.add(x.error, x.reference);
    ulps += std::fabs(x.ulps), signed_ulps += x.ulps, square_ulps += x.ulps * x.ulps;
    shrinking += std::fabs(x.result) - of;
    square_error += static_cast<long double>(size) * size;
    square_reference += static_cast<long double>(of) * of;
  }
};

double quotient(double x, double y) { return y == 0 ? 0 : x / y; }

void set_means(const Totals& t, ErrorAnalysis& x) {
  const auto count = static_cast<double>(x.compared);
  x.largest_error = t.errors.largest;
  x.largest_relative = t.errors.largest_relative;
  x.mean_ulps = quotient(t.ulps, count);
  x.root_mean_square_ulps = std::sqrt(quotient(t.square_ulps, count));
  x.mean_relative = quotient(t.errors.sum_relative, static_cast<double>(t.errors.nonzero));
  x.mean_error = quotient(t.errors.sum, count);
  if (t.square_reference != 0)
    x.frobenius = static_cast<double>(std::sqrt(t.square_error / t.square_reference));
  x.largest_by_mean = quotient(x.largest_error * count, t.errors.sum_reference);
  x.bias_error = quotient(t.errors.sum_signed, count);
  x.bias_ulps = quotient(t.signed_ulps, count);
  x.bias_relative = quotient(t.errors.sum_signed, t.errors.sum_reference);
  x.bias_magnitude = quotient(t.shrinking, t.errors.sum_reference);
  if (x.largest_componentwise) x.mean_componentwise = quotient(t.componentwise, count);
}

}  // namespace

void ErrorTally::add(double error, double reference) {
  const double size = std::fabs(error), of = std::fabs(reference);
  ++count;
  largest = std::max(largest, size);
  largest_reference = std::max(largest_reference, of);
  sum += size, sum_signed += error, sum_reference += of;
  if (of == 0) return;
  ++nonzero;
  largest_relative = std::max(largest_relative, size / of);
  sum_relative += size / of;
}

Errors errors_of(const std::vector<double>& numbers, const std::vector<double>& exact) {
  assert(numbers.size() == exact.size());
  ErrorTally tally;
  double squared = 0, squared_exact = 0;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const double difference = numbers[i] - exact[i];
    tally.add(difference, exact[i]);
    squared += difference * difference;
    squared_exact += exact[i] * exact[i];
  }
  const auto n = static_cast<double>(std::max<std::int64_t>(1, tally.count));
  return {.count = numbers.size(),
          .largest = tally.largest,
          .mean_exact = tally.sum_reference / n,
          .largest_exact = tally.largest_reference,
          .largest_relative = tally.largest_relative,
          .mean_signed = tally.sum_signed / n,
          .mean_squared = squared / n,
          .mean_squared_exact = squared_exact / n};
}

double largest_share(const std::vector<double>& numbers, const std::vector<double>& exact,
                     const std::vector<double>& scale) {
  double largest = 0;
  for (std::size_t i = 0; i < numbers.size(); ++i)
    largest = std::max(largest, std::abs(numbers[i] - exact[i]) / scale[i]);
  return largest;
}

ErrorAnalysis analyse(const Deviations& deviations, const formats::Format& d,
                      const std::vector<double>& sums, const std::optional<ErrorBound>& bound,
                      const std::vector<double>& bound_sums) {
  ErrorAnalysis result;
  result.outputs = static_cast<std::int64_t>(deviations.size());
  if (!sums.empty()) result.largest_componentwise = 0;
  if (bound) result.deterministic = result.probabilistic = BoundCheck{};
  const double largest = largest_number(d);
  Totals totals;
  double most_ulps = 0;
  for (std::size_t i = 0; i < deviations.size(); ++i) {
    const Deviation x = deviations[i];
    double ulps = std::fabs(x.ulps);
    if (!is_compared(x)) {
      count_special(x, d, result.specials);
      ulps = disagrees(x, d) ? infinite : -1;
    }
    if (ulps > most_ulps) {
      most_ulps = ulps;
      result.worst = static_cast<std::int64_t>(i);
    }
    if (!is_compared(x)) continue;
    ++result.compared;
    totals.add(x);
    result.equal += x.error == 0 && x.ulps == 0 ? 1 : 0;
    result.within_half_ulp += ulps <= 0.5 ? 1 : 0;
    const double size = std::fabs(x.error);
    result.largest_ulps = std::max(result.largest_ulps, ulps);
    if (!sums.empty()) {
      const double part = part_of(size, sums[i]);
      totals.componentwise += part;
      result.largest_componentwise = std::max(*result.largest_componentwise, part);
    }
    if (bound && std::fabs(x.reference) <= largest) check(x, *bound, bound_sums[i], result);
  }
  set_means(totals, result);
  return result;
}

HeatMap heat_map(const Deviations& deviations, const emulator::CodeMatrix& d,
                 const std::vector<double>& sums, std::int64_t batch, std::int64_t most_rows,
                 std::int64_t most_columns) {
  HeatMap map{1, 1, d.rows, d.columns, {}};
  const auto fit = [](std::int64_t elements, std::int64_t most, std::int64_t& tile,
                      std::int64_t& tiles) {
    while ((elements + tile - 1) / tile > most) tile *= 2;
    tiles = (elements + tile - 1) / tile;
  };
  fit(d.rows, most_rows, map.tile_rows, map.rows);
  fit(d.columns, most_columns, map.tile_columns, map.columns);
  map.largest.assign(static_cast<std::size_t>(map.rows * map.columns),
                     std::numeric_limits<double>::quiet_NaN());
  for (std::int64_t i = 0; i < d.rows; ++i) {
    for (std::int64_t j = 0; j < d.columns; ++j) {
      const auto at = static_cast<std::size_t>(d.index(batch, i, j));
      const Deviation x = deviations[at];
      if (!is_compared(x) && !disagrees(x, d.format)) continue;
      double error = infinite;
      if (is_compared(x))
        error = sums.empty() ? std::fabs(x.ulps) : part_of(std::fabs(x.error), sums[at]);
      double& tile = map.largest[static_cast<std::size_t>(i / map.tile_rows * map.columns +
                                                          j / map.tile_columns)];
      tile = std::isnan(tile) ? error : std::max(tile, error);
    }
  }
  return map;
}

}  // namespace guardbit::experiments
