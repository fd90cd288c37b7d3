#include "experiments/traces/trace_statistics.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "formats/codec.hpp"

namespace guardbit::experiments {

namespace {

double number_of(const formats::Format& word, std::uint64_t magnitude) {
  return std::bit_cast<double>(encode(formats::fp64, formats::decode(word, magnitude)));
}

}  // namespace

void StoringOutcome::add(const StoringOutcome& other) {
  underflow += other.underflow;
  subnormal += other.subnormal;
  overflow += other.overflow;
  lost.add(other.lost);
  lost_squares.add(other.lost_squares);
}

void TraceStatistics::add(const TraceStatistics& other) {
  elements += other.elements;
  zeros += other.zeros;
  subnormals += other.subnormals;
  infinities += other.infinities;
  nans += other.nans;
  if (other.amax && (!amax || *other.amax > *amax)) amax = other.amax;
  if (other.amin_nonzero && (!amin_nonzero || *other.amin_nonzero < *amin_nonzero))
    amin_nonzero = other.amin_nonzero;
  sum.add(other.sum);
  squares.add(other.squares);
  for (const auto& [binade, count] : other.binades) binades[binade] += count;
  outcomes.resize(std::max(outcomes.size(), other.outcomes.size()));
  for (std::size_t i = 0; i < other.outcomes.size(); ++i) outcomes[i].add(other.outcomes[i]);
  recipes.add(other.recipes);
}

std::optional<int> TraceStatistics::percentile(double fraction) const {
  const auto wanted = std::ceil(fraction * static_cast<double>(nonzero()));
  std::uint64_t below = 0;
  for (const auto& [binade, count] : binades) {
    below += count;
    if (static_cast<double>(below) >= wanted) return binade;
  }
  return std::nullopt;
}

TraceStatistics statistics_of(const MagnitudeCells& cells, const MagnitudeCounts& counts,
                              std::size_t storings) {
  TraceStatistics all;
  all.elements = counts.elements;
  all.zeros = counts.count[0];
  all.subnormals = counts.between(cells.first_nonzero(), cells.first_normal());
  all.infinities = counts.count[cells.infinity()];
  all.nans = counts.between(cells.nan(), cells.size());
  if (all.elements > all.infinities + all.nans) all.amax = number_of(cells.word(), counts.largest);
  if (all.nonzero() > 0) all.amin_nonzero = number_of(cells.word(), counts.least);
  for (std::size_t i = cells.first_nonzero(); i < cells.infinity(); ++i) {
    if (counts.count[i] == 0) continue;
    all.binades[cells.binade(i)] += counts.count[i];
    all.sum.add(counts.sum[i], cells.unit_exponent(i));
    all.squares.add(counts.squares[i], 2 * cells.unit_exponent(i));
  }
  for (std::size_t s = 0; s < storings; ++s) {
    const MagnitudeCells::Fate& fate = cells.fate(s);
    StoringOutcome outcome;
    outcome.underflow = counts.between(cells.first_nonzero(), fate.nonzero);
    outcome.subnormal = counts.between(fate.nonzero, std::max(fate.nonzero, fate.normal));
    outcome.overflow = counts.between(fate.out, cells.infinity());
    for (std::size_t i = cells.first_nonzero(); i < fate.nonzero; ++i) {
      if (counts.count[i] == 0) continue;
      outcome.lost.add(counts.sum[i], cells.unit_exponent(i));
      outcome.lost_squares.add(counts.squares[i], 2 * cells.unit_exponent(i));
    }
    all.outcomes.push_back(std::move(outcome));
  }
  return all;
}

ScaleWindow scale_window(const std::map<int, const StoringOutcome*>& by_scale,
                         std::uint64_t nonzero, double tolerance) {
  ScaleWindow window;
  std::uint64_t least = 0;
  for (const auto& [scale, outcome] : by_scale) {
    if (outcome->overflow != 0) break;
    if (!window.recommended || outcome->underflow < least) {
      window.recommended = scale;
      least = outcome->underflow;
    }
    if (static_cast<double>(outcome->underflow) > tolerance * static_cast<double>(nonzero))
      continue;
    if (!window.first) window.first = scale;
    window.last = scale;
  }
  return window;
}

}  // namespace guardbit::experiments
