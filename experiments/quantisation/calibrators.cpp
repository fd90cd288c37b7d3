#include "experiments/quantisation/calibrators.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "formats/support/error.hpp"
#include "formats/support/suggestions.hpp"

namespace guardbit::experiments {

namespace {

struct NamedQuirk {
  std::string_view name;
  bool CalibrationQuirks::*flag;
};
constexpr std::array quirks = {
    NamedQuirk{"left_edge", &CalibrationQuirks::left_edge},
    NamedQuirk{"zero_bin", &CalibrationQuirks::zero_bin},
    NamedQuirk{"zero_bin_kept", &CalibrationQuirks::zero_bin_kept},
    NamedQuirk{"last_minimum", &CalibrationQuirks::last_minimum},
    NamedQuirk{"fp32_counts", &CalibrationQuirks::fp32_counts},
    NamedQuirk{"least_edge", &CalibrationQuirks::least_edge},
};

/// + 1 rounds back to it
constexpr std::int64_t last_fp32_count = std::int64_t{1} << 24;

/// Bins below the one at `first`.
std::int64_t sum_from(const MagnitudeHistogram& h, std::size_t first) {
  return std::accumulate(h.counts.begin() + static_cast<std::ptrdiff_t>(first), h.counts.end(),
                         std::int64_t{0});
}

/// The group of bin `v`, of `groups` of equal width over bins 0 to i - 1. NumPy's linspace gives
/// the edges g * (i / groups), exact since `groups` is a power of two, so integers say the same.
std::size_t group_of(std::size_t v, std::size_t i, std::size_t groups) { return v * groups / i; }

/// Divergence of the first i bins from their merged ones.
double divergence(const std::vector<std::int64_t>& counts, std::size_t i, std::int64_t rest,
                  std::size_t groups) {
  double merged_sum = 0, reference_sum = static_cast<double>(rest);
  std::vector<double> merged(i);
  for (std::size_t begin = 0; begin < i;) {
    const std::size_t group = group_of(begin, i, groups);
    std::size_t end = begin, occupied = 0;
    std::int64_t total = 0;
    for (; end < i && group_of(end, i, groups) == group; ++end) {
      total += counts[end];
      if (counts[end] != 0) ++occupied;
    }
    for (std::size_t v = begin; v < end; ++v) {
      if (counts[v] != 0) merged[v] = static_cast<double>(total) / static_cast<double>(occupied);
      merged_sum += merged[v];
    }
    reference_sum += static_cast<double>(total);
    begin = end;
  }
  double result = 0;
  for (std::size_t v = 0; v < i; ++v) {
    const double p = static_cast<double>(counts[v] + (v + 1 == i ? rest : 0)) / reference_sum;
    const double q = merged[v] / merged_sum;
    if (p == 0) continue;
    if (q == 0) return std::numeric_limits<double>::infinity();
    result += p * std::log(p / q);
  }
  return result;
}

}  // namespace

CalibrationQuirks parse_quirks(std::string_view text, std::string_view where) {
  const std::string word = formats::lower_case(text);
  CalibrationQuirks result;
  if (word == "none") return result;
  if (word == "modelopt" || word == "modelopt_numpy") {
    result.left_edge = result.zero_bin = result.last_minimum = true;
    result.fp32_counts = word == "modelopt";
    result.zero_bin_kept = result.least_edge = word == "modelopt_numpy";
    return result;
  }
  std::vector<std::string_view> names = {"none", "modelopt", "modelopt_numpy"};
  for (const NamedQuirk& q : quirks) names.push_back(q.name);
  for (std::size_t begin = 0; begin <= word.size();) {
    const std::size_t end = std::min(word.find(',', begin), word.size());
    const std::string name = word.substr(begin, end - begin);
    const auto* const found = std::ranges::find(quirks, std::string_view(name), &NamedQuirk::name);
    if (found == quirks.end())
      throw formats::Error(std::string(where), formats::unknown_name("quirk", name, names),
                           "none, modelopt, modelopt_numpy, or any of " + std::string(quirk_names));
    result.*found->flag = true;
    begin = end + 1;
  }
  result.zero_bin = result.zero_bin || result.zero_bin_kept;
  return result;
}

std::string to_text(const CalibrationQuirks& chosen) {
  std::string text;
  for (const NamedQuirk& q : quirks) {
    if (!(chosen.*q.flag)) continue;
    if (!text.empty()) text += ',';
    text += q.name;
  }
  return text.empty() ? "none" : text;
}

void HistogramCollector::begin(float least, float largest) {
  const float first = quirks_.least_edge ? least : 0;
  // One number, or zeros only: NumPy's way, a bin range of length 1 around it.
  const float low = largest > first ? first : first - 0.5F;
  const float high = largest > first ? largest : largest + 0.5F;
  histogram_.counts.assign(bins_, 0);
  histogram_.edges.resize(bins_ + 1);
  const float width = (high - low) / static_cast<float>(bins_);
  for (std::size_t i = 0; i <= bins_; ++i)
    histogram_.edges[i] = low + static_cast<float>(i) * width;
  histogram_.edges.back() = high;
}

void HistogramCollector::extend(float largest) {
  const auto width = static_cast<float>(histogram_.edges[1] - histogram_.edges[0]);
  const auto low = static_cast<float>(histogram_.edges[0]);
  while (histogram_.edges.back() < largest) {
    histogram_.edges.push_back(low + static_cast<float>(histogram_.edges.size()) * width);
    histogram_.counts.push_back(0);
  }
}

void HistogramCollector::collect(std::span<const float> numbers, std::string_view where) {
  if (numbers.empty()) return;
  float least = std::numeric_limits<float>::infinity(), largest = 0;
  for (const float x : numbers) {
    if (!std::isfinite(x)) throw formats::Error(std::string(where), "holds an infinity or a NaN");
    least = std::min(least, std::fabs(x));
    largest = std::max(largest, std::fabs(x));
  }
  if (histogram_.counts.empty()) begin(least, largest);
  if (largest > histogram_.edges.back()) extend(largest);
  const std::vector<double>& edges = histogram_.edges;
  std::vector<std::int64_t> added(histogram_.counts.size());
  for (const float x : numbers) {
    const double magnitude = std::fabs(x);
    if (magnitude < edges.front()) continue;  // of later batches, where the edges begin above 0
    const auto bin = std::ranges::upper_bound(edges, magnitude) - edges.begin() - 1;
    std::int64_t& count = added[std::min(static_cast<std::size_t>(bin), added.size() - 1)];
    if (!quirks_.fp32_counts || count < last_fp32_count) ++count;
  }
  for (std::size_t i = 0; i < added.size(); ++i) {
    std::int64_t& count = histogram_.counts[i];
    count += added[i];
    if (quirks_.fp32_counts) count = static_cast<std::int64_t>(static_cast<float>(count));
  }
}

double percentile_amax(const MagnitudeHistogram& h, const CalibrationOptions& options) {
  const auto total = static_cast<double>(sum_from(h, 0));
  double share = 0;
  std::size_t bin = 0;
  for (; bin < h.counts.size(); ++bin) {
    share += static_cast<double>(h.counts[bin]) / total;
    if (share >= options.percentile / 100) break;
  }
  // Rounding may keep the sum of all shares below the one that is asked for.
  if (bin == h.counts.size()) return h.edges.back();
  return h.edges[options.quirks.left_edge ? bin : bin + 1];
}

std::optional<EntropyChoice> entropy_choice(MagnitudeHistogram& h,
                                            const CalibrationOptions& options) {
  if (h.counts.size() < std::max<std::size_t>(2, options.first_bin)) return std::nullopt;
  std::vector<std::int64_t> counts = h.counts;
  if (options.quirks.zero_bin) counts[0] = counts[1];
  if (options.quirks.zero_bin_kept) h.counts[0] = counts[0];
  const auto groups = static_cast<std::size_t>(options.bound()) + 1;
  std::int64_t rest = std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
  for (std::size_t v = 0; v < options.first_bin; ++v) rest -= counts[v];
  EntropyChoice choice;
  std::size_t best = 0;
  for (std::size_t i = options.first_bin; i <= counts.size(); i += options.stride) {
    choice.divergences.push_back(divergence(counts, i, rest, groups));
    for (std::size_t v = i; v < std::min(i + options.stride, counts.size()); ++v) rest -= counts[v];
    const double last = choice.divergences.back(), least = choice.divergences[best];
    if (last < least || (last == least && options.quirks.last_minimum))
      best = choice.divergences.size() - 1;
  }
  choice.amax = h.edges[options.first_bin + best * options.stride];
  return choice;
}

float fake_quantised(float x, float amax, const CalibrationOptions& options) {
  if (amax <= 0x1p-24F) return 0;
  const auto bound = static_cast<float>(options.bound());
  const float factor = bound / amax;
  const float low = options.is_unsigned ? 0 : -bound;
  return std::clamp(std::nearbyint(x * factor), low, bound) / factor;
}

std::optional<double> mse_amax(const MagnitudeHistogram& h, const CalibrationOptions& options) {
  std::vector<float> centres(h.counts.size());
  for (std::size_t v = 0; v < centres.size(); ++v)
    centres[v] = (static_cast<float>(h.edges[v + 1]) + static_cast<float>(h.edges[v])) / 2;
  std::optional<double> best;
  double least = 0;
  for (std::size_t i = options.first_bin; i < centres.size(); i += options.stride) {
    double sum = 0;
    for (std::size_t v = 0; v < centres.size(); ++v) {
      if (h.counts[v] == 0) continue;
      const float error = fake_quantised(centres[v], centres[i], options) - centres[v];
      sum += static_cast<double>(error * error * static_cast<float>(h.counts[v]));
    }
    if (best && sum >= least) continue;
    best = centres[i];
    least = sum;
  }
  return best;
}

AmaxSearch::AmaxSearch(float first_amax, const CalibrationOptions& options)
    : first_amax_(first_amax), options_(options), errors_(steps) {}

float AmaxSearch::candidate(int step) const {
  // torch.linspace: from the near end, in FP32.
  constexpr float first = 0.25F, last = 4.0F, width = (last - first) / (steps - 1);
  const float multiple = step < steps / 2 ? first + width * static_cast<float>(step)
                                          : last - width * static_cast<float>(steps - step - 1);
  return first_amax_ * multiple;
}

void AmaxSearch::collect(std::span<const float> numbers) {
  for (int step = 0; step < steps; ++step) {
    const float amax = candidate(step);
    double& sum = errors_[static_cast<std::size_t>(step)];
    for (const float x : numbers) {
      const float error = x - fake_quantised(x, amax, options_);
      sum += static_cast<double>(error * error);
    }
  }
}

float AmaxSearch::amax() const {
  return candidate(static_cast<int>(std::ranges::min_element(errors_) - errors_.begin()));
}

float calibrated_amax(Calibrator calibrator, std::span<const float> numbers,
                      const CalibrationOptions& options, std::string_view where) {
  float largest = 0;
  for (const float x : numbers) {
    if (!std::isfinite(x)) throw formats::Error(std::string(where), "holds an infinity or a NaN");
    largest = std::max(largest, std::fabs(x));
  }
  if (calibrator == Calibrator::max || largest == 0) return largest;
  if (calibrator == Calibrator::search) {
    AmaxSearch search(largest, options);
    search.collect(numbers);
    return search.amax();
  }
  HistogramCollector collector(options.quirks);
  collector.collect(numbers, where);
  MagnitudeHistogram& h = collector.histogram();
  std::optional<double> amax;
  if (calibrator == Calibrator::percentile) amax = percentile_amax(h, options);
  if (calibrator == Calibrator::mse) amax = mse_amax(h, options);
  if (calibrator == Calibrator::entropy) {
    if (const auto choice = entropy_choice(h, options)) amax = choice->amax;
  }
  if (!amax) throw formats::Error(std::string(where), "has fewer bins than the first to try");
  return static_cast<float>(*amax);
}

}  // namespace guardbit::experiments
