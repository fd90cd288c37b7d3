#include "emulator/faults/rounded_parts.hpp"

#include <algorithm>
#include <cmath>
#include <random>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "emulator/gemm/problem.hpp"
#include "emulator/gemm/scalar.hpp"
#include "formats/format_catalogue.hpp"
#include "formats/support/stop.hpp"
#include "formats/text.hpp"

namespace guardbit::emulator {

namespace {

/// How parts become a sum.
enum class Way : std::uint8_t {
  /// rounded, added in FP32
  workspace,
  /// multiplied by alpha, rounded, added in FP32
  scaled_workspace,
  /// rounded, each sum rounded as well: additions of 16 bits
  rounded_sums,
  /// D takes the first part, then one after the other, and is rounded each time
  in_place,
  /// the same from the last part on
  in_place_descending,
  /// the same in order, of rounded parts: atomic additions of 16 bits
  in_place_rounded,
};
constexpr Way ways[] = {Way::workspace,           Way::scaled_workspace, Way::in_place,
                        Way::in_place_descending, Way::rounded_sums,     Way::in_place_rounded};

/// To nearest even, of formats with at most 23 fraction bits; numbers are far from FP64's limits.
class Rounder {
 public:
  explicit Rounder(const Format& format)
      : fraction_bits_(format.fraction_bits),
        lowest_(1 - format.bias),
        largest_(scalar::decoded(format, formats::max_finite_code(format))) {}
  double operator()(double x) const {
    if (!std::isfinite(x) || x == 0) return x;
    const int exponent = std::max(std::ilogb(x), lowest_);
    const double large = std::ldexp(1.5, exponent - fraction_bits_ + 52);
    const double rounded = (x + large) - large;
    return std::abs(rounded) <= largest_ ? rounded : std::copysign(INFINITY, x);
  }

 private:
  int fraction_bits_, lowest_;
  double largest_;
};

/// One output: sums of the products of the first k elements of K, for each k.
struct Sampled {
  std::vector<double> sums;
  double addend = 0, seen = 0, allowed = 0;
  /// one of those spread over D, not chosen for what it tells
  bool is_spread = false;

  double part(const KRanges& ranges) const {
    double sum = 0;
    for (const KRange& range : ranges)
      sum +=
          sums[static_cast<std::size_t>(range.end)] - sums[static_cast<std::size_t>(range.begin)];
    return sum;
  }
};

/// A sum before the last rounding, and how far its parts' roundings may take it.
struct Sum {
  double value = 0, off = 0;
};

Sum add_up(Way way, std::span<const double> parts, double alpha, double addend,
           const Format& format, const Rounder& rounded) {
  Sum sum;
  const auto round = [&](double x) {
    sum.off += half_spacing(format, x);
    return rounded(x);
  };
  const std::size_t last = parts.size() - 1;
  switch (way) {
    case Way::workspace:
      for (const double part : parts) sum.value += round(part);
      break;
    case Way::scaled_workspace:
      sum.value = addend;
      for (const double part : parts) sum.value += round(alpha * part);
      return sum;
    case Way::rounded_sums:
      sum.value = round(parts[0]);
      for (std::size_t p = 1; p <= last; ++p) sum.value = round(sum.value + round(parts[p]));
      break;
    case Way::in_place:
    case Way::in_place_descending:
    case Way::in_place_rounded: {
      sum.value = addend;
      for (std::size_t p = 0; p <= last; ++p) {
        const double part = alpha * parts[way == Way::in_place_descending ? last - p : p];
        sum.value += way == Way::in_place_rounded ? round(part) : part;
        if (p != last) sum.value = round(sum.value);
      }
      return sum;
    }
  }
  sum.value = alpha * sum.value + addend;
  sum.off *= std::abs(alpha);
  return sum;
}

/// Splits that kernels make, each once.
std::vector<std::pair<Partition, std::vector<KRanges>>> splits_of(std::int64_t k) {
  constexpr int most_parts = 32, most_in_turn = 16;
  // Parts of more ranges take seconds.
  constexpr std::int64_t most_ranges = 4096;
  std::vector<std::pair<Partition, std::vector<KRanges>>> list;
  std::set<std::vector<std::int64_t>> known;
  for (int parts = 2; parts <= most_parts; ++parts) {
    for (const Division division :
         {Division::ceil, Division::balanced, Division::balanced_last, Division::round_robin}) {
      const bool in_turn = division == Division::round_robin;
      for (const std::int64_t tile : {64, 32, 128, 16, 8, 256, 4, 1}) {
        if (in_turn && (parts > most_in_turn || tile < 16 || k / tile > most_ranges)) continue;
        const Partition partition{.parts = parts, .tile = tile, .division = division};
        std::vector<KRanges> divided = divide(partition, {{0, k}});
        if (std::ssize(divided) != parts) continue;
        std::vector<std::int64_t> key;
        for (const KRanges& part : divided) {
          for (const KRange& range : part) key.insert(key.end(), {range.begin, range.end});
          key.push_back(-1);
        }
        if (known.insert(std::move(key)).second) list.emplace_back(partition, std::move(divided));
      }
    }
  }
  return list;
}

class Search {
 public:
  explicit Search(const ProductNumbers& x) : x_(x) {}
  std::optional<RoundedParts> run();

 private:
  bool sample(const Format& format);
  double allowed(const Expected& asked, std::size_t at, const Format& format) const;
  double agreeing(const std::vector<KRanges>& parts, Way way, const Format& format,
                  std::size_t count) const;
  double agreeing_spread(const std::vector<KRanges>& parts, Way way, const Format& format) const;
  double truncated_spread() const;
  bool agrees(const Sampled& output, double sum) const;
  bool agrees(const Sampled& output, const std::vector<KRanges>& parts, Way way,
              const Rounder& rounded, const Format& format) const;
  double unit_of(const std::vector<KRanges>& parts, Way way, const Format& format) const;
  std::vector<Format> formats_of_parts() const;

  const ProductNumbers& x_;
  std::vector<Sampled> outputs_;
};

/// Some outputs spread over D, and some of those that no last rounding alone explains, which tell
/// most. False if there are hardly any of these.
bool Search::sample(const Format& format) {
  constexpr std::int64_t most = 192, fewest = 64;
  constexpr std::int64_t most_numbers = std::int64_t{1} << 20;
  const std::int64_t k = x_.k(),
                     wanted = std::clamp(most_numbers / std::max<std::int64_t>(k, 1), fewest, most);
  const Expected asked = x_.asked(), addend = asked - x_.product_alone();
  std::vector<std::int64_t> told, off;
  bool is_beyond = false;
  const double least_normal = std::ldexp(1.0, 1 - x_.output.bias);
  std::set<std::pair<double, double>> known;
  const auto at = [](std::int64_t i) { return static_cast<std::size_t>(i); };
  for (std::int64_t i = 0; i < x_.m() * x_.n(); ++i) {
    const double seen = x_.d.values[at(i)], exact = asked.result.values[at(i)];
    if (x_.is_hidden(at(i)) || !std::isfinite(seen) || !std::isfinite(exact)) continue;
    // Results that are flushed to zero say nothing, and equal outputs say it once.
    const bool is_flushed = seen == 0 && std::abs(exact) < least_normal;
    if (is_flushed || !known.insert({exact, seen}).second) continue;
    told.push_back(i);
    const double error = std::abs(seen - exact) - x_.rounding_of_d(exact);
    if (error > allowed(asked, at(i), format)) off.push_back(i);
    is_beyond = is_beyond || error > x_.rounding_of_sums(exact, asked.magnitude.values[at(i)]);
  }
  if (!is_beyond && std::ssize(off) * 50 < std::ssize(told)) return false;
  std::set<std::int64_t> spread_over_d, chosen;
  for (const Output& o : scattered_outputs(1, 1, std::ssize(told), wanted))
    spread_over_d.insert(told[at(o.column)]);
  chosen = spread_over_d;
  for (const Output& o : scattered_outputs(1, 1, std::ssize(off), wanted))
    chosen.insert(off[at(o.column)]);
  // The first few are spread over D, too.
  std::vector<std::int64_t> outputs(chosen.begin(), chosen.end());
  std::shuffle(outputs.begin(), outputs.end(), std::mt19937(1));
  for (const std::int64_t i : outputs) {
    formats::check_stop();
    Sampled output{std::vector<double>(at(k + 1)), addend.result.values[at(i)], x_.d.values[at(i)],
                   allowed(asked, at(i), format), spread_over_d.contains(i)};
    for (std::int64_t l = 0; l < k; ++l)
      output.sums[at(l + 1)] = output.sums[at(l)] + x_.a(i / x_.n(), l) * x_.b(l, i % x_.n());
    outputs_.push_back(std::move(output));
  }
  return true;
}

/// How far sums in FP32 usually are from exact ones, or a small part of what a rounding to the
/// format is.
double Search::allowed(const Expected& asked, std::size_t at, const Format& format) const {
  const double product = asked.result.values[at] / 4;
  return std::max(x_.rounding_unit() / 64 * asked.magnitude.values[at],
                  0.15 * half_spacing(format, product));
}

bool Search::agrees(const Sampled& output, double sum) const {
  if (x_.activation == Activation::relu && sum < 0 && output.seen <= 0) return true;
  return std::abs(output.seen - sum) <=
         output.allowed + x_.spacings * 2 * half_spacing(x_.output, sum);
}

bool Search::agrees(const Sampled& output, const std::vector<KRanges>& parts, Way way,
                    const Rounder& rounded, const Format& format) const {
  std::vector<double> sums(parts.size());
  for (std::size_t p = 0; p < parts.size(); ++p) sums[p] = output.part(parts[p]);
  return agrees(output, add_up(way, sums, x_.alpha, output.addend, format, rounded).value);
}

/// The share of the first `count` outputs that come out so.
double Search::agreeing(const std::vector<KRanges>& parts, Way way, const Format& format,
                        std::size_t count) const {
  formats::check_stop();
  const Rounder rounded(format);
  const auto agree = std::count_if(
      outputs_.begin(), outputs_.begin() + static_cast<std::ptrdiff_t>(count),
      [&](const Sampled& output) { return agrees(output, parts, way, rounded, format); });
  return static_cast<double>(agree) / static_cast<double>(count);
}

/// The share of those spread over D.
double Search::agreeing_spread(const std::vector<KRanges>& parts, Way way,
                               const Format& format) const {
  const Rounder rounded(format);
  double agree = 0, all = 0;
  for (const Sampled& output : outputs_) {
    if (!output.is_spread) continue;
    all += 1;
    agree += agrees(output, parts, way, rounded, format) ? 1 : 0;
  }
  return agree / std::max(all, 1.0);
}

/// The share of those that are the whole sum, truncated to D's format.
double Search::truncated_spread() const {
  double agree = 0, all = 0;
  for (const Sampled& output : outputs_) {
    if (!output.is_spread) continue;
    const double sum = x_.alpha * output.sums.back() + output.addend,
                 cut = std::copysign(1.0, sum) * (sum - output.seen);
    all += 1;
    const bool fits =
        cut >= -output.allowed && cut <= 2 * half_spacing(x_.output, sum) + output.allowed;
    agree += fits ? 1 : 0;
  }
  return agree / std::max(all, 1.0);
}

/// The largest part of an output's magnitude that these roundings may take it.
double Search::unit_of(const std::vector<KRanges>& parts, Way way, const Format& format) const {
  const Rounder rounded(format);
  std::vector<RealMatrix> products;
  for (const KRanges& ranges : parts) {
    RealMatrix& product = products.emplace_back(x_.m(), x_.n());
    for (const KRange& range : ranges) {
      const RealMatrix more = multiply(part(x_.a, 0, x_.m(), range.begin, range.length()),
                                       part(x_.b, range.begin, range.length(), 0, x_.n()));
      for (std::size_t i = 0; i < more.values.size(); ++i) product.values[i] += more.values[i];
    }
  }
  const Expected asked = x_.asked(), addend = asked - x_.product_alone();
  double largest = 0;
  std::vector<double> sums(parts.size());
  for (std::size_t i = 0; i < asked.result.values.size(); ++i) {
    if (x_.is_left_out(i) || !(asked.magnitude.values[i] > 0)) continue;
    for (std::size_t p = 0; p < sums.size(); ++p) sums[p] = products[p].values[i];
    const double off = add_up(way, sums, x_.alpha, addend.result.values[i], format, rounded).off;
    if (std::isfinite(off)) largest = std::max(largest, off / asked.magnitude.values[i]);
  }
  return 1.001 * largest;
}

std::vector<Format> Search::formats_of_parts() const {
  if (x_.output == formats::fp32) return {formats::fp16, formats::bf16};
  if (x_.output == formats::fp16 || x_.output == formats::bf16) return {x_.output};
  return {};
}

std::optional<RoundedParts> Search::run() {
  constexpr std::size_t fewest = 4, at_first = 96, kept = 12;
  const std::vector<Format> formats = formats_of_parts();
  if (formats.empty() || x_.k() < 4 || is_smooth(x_.activation)) return {};
  if (!sample(formats.back()) || outputs_.size() < fewest) return {};
  // Sums that nothing but D rounds.
  const std::vector<KRanges> whole = {{{0, x_.k()}}};
  const double unrounded = agreeing(whole, Way::in_place, formats.front(), outputs_.size());
  const auto splits = splits_of(x_.k());
  struct Candidate {
    double share;
    std::size_t split;
    Way way;
    Format format;
  };
  std::vector<Candidate> candidates;
  const std::size_t few = std::min(at_first, outputs_.size()),
                    very_few = std::min<std::size_t>(24, few);
  for (std::size_t split = 0; split < splits.size(); ++split)
    for (const Format& format : formats)
      for (const Way way : ways) {
        if (way == Way::scaled_workspace && x_.alpha == 1) continue;
        if (x_.output == formats::fp32 && way != Way::workspace && way != Way::scaled_workspace)
          break;
        // Those that fit have at least half of the outputs.
        const double at_once = agreeing(splits[split].second, way, format, very_few);
        candidates.push_back(
            {at_once < 0.3 ? at_once : agreeing(splits[split].second, way, format, few), split, way,
             format});
      }
  if (candidates.empty()) return {};
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Candidate& p, const Candidate& q) { return p.share > q.share; });
  const double by_chance = std::max(unrounded, candidates[candidates.size() / 2].share);
  candidates.resize(std::min(kept, candidates.size()));
  for (Candidate& candidate : candidates)
    candidate.share =
        agreeing(splits[candidate.split].second, candidate.way, candidate.format, outputs_.size());
  const Candidate best =
      *std::max_element(candidates.begin(), candidates.end(),
                        [](const Candidate& p, const Candidate& q) { return p.share < q.share; });
  // The error of a share of so many outputs, and the best one of many.
  constexpr double clearly = 5;
  const double error =
      std::sqrt(std::max(by_chance * (1 - by_chance), 0.01) / static_cast<double>(outputs_.size()));
  const bool is_exact = best.share == 1;
  if (best.share <= by_chance) return {};
  if (!is_exact && !(best.share > 0.5 && best.share - by_chance > clearly * error)) return {};
  // Half of the outputs were chosen because D's rounding alone does not explain them. Of those
  // spread over D a split must explain more than that does, or than truncation.
  const std::vector<KRanges>& divided = splits[best.split].second;
  const double share = agreeing_spread(divided, best.way, best.format);
  if (share <= agreeing_spread(whole, Way::in_place, formats.front()) ||
      share <= truncated_spread())
    return {};
  RoundedParts result;
  result.split = splits[best.split].first;
  const bool in_place = best.way == Way::in_place || best.way == Way::in_place_descending ||
                        best.way == Way::in_place_rounded;
  result.split.order = in_place ? SumOrder::in_place : SumOrder::ascending;
  result.split.sums = best.format;
  result.unit = unit_of(divided, best.way, best.format);
  return result;
}

}  // namespace

std::optional<RoundedParts> find_rounded_parts(const ProductNumbers& x) { return Search(x).run(); }

Fault rounded_parts_fault(const RoundedParts& parts, std::int64_t k) {
  const std::string name = formats::name_of(parts.split.sums);
  const std::vector<KRanges> divided = divide(parts.split, {{0, k}});
  std::vector<Places> first;
  for (const KRange& range : divided.front()) first.push_back({range.begin, range.end});
  const bool in_place = parts.split.order == SumOrder::in_place;
  return {.kind = FaultKind::narrow_accumulator,
          .name = name,
          .text = "K is split into " + std::to_string(divided.size()) +
                  " parts (the first is k = " + text_of(first) + "), " +
                  (in_place ? "which are added in D, rounded to " + name + " after each"
                            : "each of which is rounded to " + name + " before they are added")};
}

}  // namespace guardbit::emulator
