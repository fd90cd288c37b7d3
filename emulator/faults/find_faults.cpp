#include "emulator/faults/find_faults.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <set>
#include <span>
#include <utility>

namespace guardbit::emulator {

namespace {

using Hypothesis = Faults (*)(const ProductNumbers&);
using Interrupted = std::function<bool()>;

/// Those that speak of all outputs, simple ones first. Numbers that nothing explains, in a part of
/// an operand, come last: of all of D they are looked for after its parts.
constexpr Hypothesis of_all[] = {
    find_factors,         find_wrapping,          find_activation,       find_softmax,
    find_dropped_outputs, find_output_conversion, find_input_conversion, find_k_weights,
    find_wrong_elements,  find_permuted_lines,    find_line_changes,     find_k_range,
    find_stale_tile,      find_k_sources,         find_unmasked_tail,    find_wrong_tile};
constexpr auto all_but_last = std::span(of_all).first(std::size(of_all) - 1);

/// What a kernel may do that leaves every output within the bound of honest rounding.
constexpr Hypothesis hidden[] = {find_k_weights, find_k_sources};

Faults first_that_fits(const ProductNumbers& x, std::span<const Hypothesis> hypotheses,
                       const Interrupted& interrupted) {
  for (const Hypothesis hypothesis : hypotheses) {
    if (interrupted && interrupted()) return {};
    if (Faults faults = hypothesis(x); !faults.empty()) return faults;
  }
  return {};
}

/// The rows and columns in which outputs are wrong.
Region extent_of(const Disagreement& wrong, std::int64_t columns) {
  std::set<std::int64_t> rows, all_columns;
  for (std::size_t at = 0; at < wrong.at.size(); ++at) {
    if (!wrong.at[at]) continue;
    rows.insert(static_cast<std::int64_t>(at) / columns);
    all_columns.insert(static_cast<std::int64_t>(at) % columns);
  }
  return {{rows.begin(), rows.end()}, {all_columns.begin(), all_columns.end()}};
}

/// Groups of wrong outputs that touch, or nearly: in the same or neighbouring squares of 8 x 8.
/// Those with most wrong outputs come first.
std::vector<Region> areas_of(const Disagreement& wrong, std::int64_t m, std::int64_t n) {
  constexpr std::int64_t cell = 8;
  const std::int64_t down = (m + cell - 1) / cell, across = (n + cell - 1) / cell;
  std::vector<int> area(static_cast<std::size_t>(down * across), -1);  // -1: right, 0: not seen yet
  const auto place = [&](std::int64_t at) {
    return static_cast<std::size_t>(at / n / cell * across + at % n / cell);
  };
  for (std::size_t at = 0; at < wrong.at.size(); ++at)
    if (wrong.at[at]) area[place(static_cast<std::int64_t>(at))] = 0;
  int count = 0;
  for (std::size_t start = 0; start < area.size(); ++start) {
    if (area[start] != 0) continue;
    std::vector<std::size_t> queue = {start};
    area[start] = ++count;
    while (!queue.empty()) {
      const auto at = static_cast<std::int64_t>(queue.back());
      queue.pop_back();
      for (const auto& [di, dj] : {std::pair{-1, 0}, {1, 0}, {0, -1}, {0, 1}}) {
        const std::int64_t i = at / across + di, j = at % across + dj;
        if (i < 0 || j < 0 || i >= down || j >= across) continue;
        int& next = area[static_cast<std::size_t>(i * across + j)];
        if (next != 0) continue;
        next = count;
        queue.push_back(static_cast<std::size_t>(i * across + j));
      }
    }
  }
  std::vector<Disagreement> parts(static_cast<std::size_t>(count));
  for (Disagreement& part : parts) part.at.resize(wrong.at.size());
  for (std::size_t at = 0; at < wrong.at.size(); ++at) {
    if (!wrong.at[at]) continue;
    const int number = area[place(static_cast<std::int64_t>(at))];
    Disagreement& part = parts[static_cast<std::size_t>(number) - 1];
    part.at[at] = true;
    ++part.count;
  }
  std::stable_sort(parts.begin(), parts.end(),
                   [](const auto& x, const auto& y) { return x.count > y.count; });
  std::vector<Region> regions;
  regions.reserve(parts.size());
  for (const Disagreement& part : parts) regions.push_back(extent_of(part, n));
  return regions;
}

/// "rows 16 to 31, columns 0 to 15"
std::string where(const ProductNumbers& x, const Region& region) {
  return lines_of("row", x.rows.places(region.rows)) + ", " +
         lines_of("column", x.columns.places(region.columns));
}

/// What happened in one region of D.
Faults in_region(const ProductNumbers& x, const Region& region,
                 std::span<const Hypothesis> hypotheses, const Interrupted& interrupted) {
  for (const auto look : {find_blank, find_misplaced})
    if (Faults faults = look(x, region); !faults.empty()) return faults;
  const bool is_all = std::ssize(region.rows) * std::ssize(region.columns) * 10 > x.m() * x.n() * 9;
  if (is_all) return {};
  Faults faults = first_that_fits(x.selected(region.rows, region.columns), hypotheses, interrupted);
  for (Fault& fault : faults) {
    if (fault.kind == FaultKind::wrong_element) continue;
    if (fault.rows.empty()) fault.rows = x.rows.places(region.rows);
    if (fault.columns.empty()) fault.columns = x.columns.places(region.columns);
    fault.text = "in " + where(x, region) + ": " + fault.text;
  }
  return faults;
}

/// One value in all wrong elements, though they are no rectangle: a mask, or what was never
/// written.
Faults one_value(const ProductNumbers& x, const Disagreement& wrong) {
  constexpr std::int64_t fewest = 4;
  std::optional<double> value;
  for (std::size_t at = 0; at < wrong.at.size(); ++at) {
    if (!wrong.at[at]) continue;
    if (value && *value != x.d.values[at]) return {};
    value = x.d.values[at];
  }
  if (!value || wrong.count < fewest) return {};
  const Region region = extent_of(wrong, x.n());
  return {{.kind = FaultKind::not_written,
           .rows = x.rows.places(region.rows),
           .columns = x.columns.places(region.columns),
           .value = value,
           .operand = "d",
           .text = std::to_string(wrong.count) + " elements of D, all that are wrong, are " +
                   text_of(*value) + ", in " + where(x, region) +
                   ": nothing was written there, or a mask was"}};
}

/// What happened in parts of D: where rows and columns with wrong outputs meet, else in each of the
/// areas.
Faults in_parts(const ProductNumbers& x, const Disagreement& wrong,
                const Interrupted& interrupted) {
  constexpr std::size_t most = 6;
  const Region extent = extent_of(wrong, x.n());
  if (Faults faults = in_region(x, extent, all_but_last, interrupted); !faults.empty())
    return faults;
  if (Faults faults = find_wrong_tile(x); !faults.empty()) return faults;
  if (Faults faults = one_value(x, wrong); !faults.empty()) return faults;
  if (Faults faults = find_scattered_range(x); !faults.empty()) return faults;
  // A few elements, each by itself.
  Faults all;
  if (wrong.count <= static_cast<std::int64_t>(most)) {
    for (std::size_t at = 0; at < wrong.at.size(); ++at)
      if (wrong.at[at])
        all.push_back(find_blank(x, {{static_cast<std::int64_t>(at) / x.n()},
                                     {static_cast<std::int64_t>(at) % x.n()}})
                          .front());
    return all;
  }
  const std::vector<Region> areas = areas_of(wrong, x.m(), x.n());
  if (areas.size() < 2) return {};
  std::size_t named = 0;
  for (std::size_t i = 0; i < std::min(most, areas.size()); ++i) {
    Faults faults = in_region(x, areas[i], of_all, interrupted);
    if (!faults.empty()) ++named;
    if (faults.empty())
      faults = {
          {.kind = FaultKind::unknown,
           .rows = x.rows.places(areas[i].rows),
           .columns = x.columns.places(areas[i].columns),
           .text = "in " + where(x, areas[i]) + ": wrong for no reason that has a name here"}};
    all.insert(all.end(), faults.begin(), faults.end());
  }
  if (named == 0) return {};
  if (areas.size() > most)
    all.push_back({.kind = FaultKind::unknown,
                   .text = std::to_string(areas.size() - most) +
                           " further areas of D are wrong and were not looked at"});
  return all;
}

/// Elements that are NaN or infinite, if no others are wrong.
Faults not_a_number(const ProductNumbers& x, const Disagreement& wrong) {
  for (std::size_t at = 0; at < wrong.at.size(); ++at)
    if (wrong.at[at] && std::isfinite(x.d.values[at])) return {};
  const Region region = extent_of(wrong, x.n());
  return {{.kind = FaultKind::not_a_number,
           .rows = x.rows.places(region.rows),
           .columns = x.columns.places(region.columns),
           .operand = "d",
           .text = std::to_string(wrong.count) +
                   " elements of D are NaN or infinite where the operands give numbers, in " +
                   where(x, region)}};
}

/// The honest words for what has no name, with where it is.
Fault unknown(const ProductNumbers& x, const Expected& asked, const Disagreement& wrong) {
  const Region region = extent_of(wrong, x.n());
  double product = 0, size_d = 0, size_asked = 0;
  for (std::size_t i = 0; i < x.d.values.size(); ++i) {
    const double p = x.d.values[i], q = asked.result.values[i];
    if (!std::isfinite(p) || !std::isfinite(q)) continue;
    product += p * q, size_d += p * p, size_asked += q * q;
  }
  const double likeness = product / std::sqrt(std::max(size_d * size_asked, 1e-300));
  return {.kind = FaultKind::unknown,
          .rows = x.rows.places(region.rows),
          .columns = x.columns.places(region.columns),
          .text = std::to_string(wrong.count) + " of " + std::to_string(std::ssize(wrong.at)) +
                  " elements are further from the exact result than rounding explains, in " +
                  where(x, region) + ", for no reason that has a name here; D is " +
                  (std::abs(likeness) < 0.2   ? "nothing like the product that was asked for"
                   : std::abs(likeness) < 0.9 ? "partly the product that was asked for"
                                              : "mostly the product that was asked for") +
                  " (correlation " + text_of(likeness, 3) + ")"};
}

std::vector<std::pair<std::int64_t, std::int64_t>> examples_of(const ProductNumbers& x,
                                                               const Disagreement& wrong) {
  constexpr std::int64_t most = 32;
  std::vector<std::pair<std::int64_t, std::int64_t>> all, some;
  for (std::size_t at = 0; at < wrong.at.size(); ++at)
    if (wrong.at[at])
      all.emplace_back(x.rows(static_cast<std::int64_t>(at) / x.n()),
                       x.columns(static_cast<std::int64_t>(at) % x.n()));
  for (const std::int64_t i : spread(std::ssize(all), most))
    some.push_back(all[static_cast<std::size_t>(i)]);
  return some;
}

double largest_error(const ProductNumbers& x, const Expected& asked) {
  double largest = 0;
  for (std::size_t i = 0; i < x.d.values.size(); ++i) {
    const double error = x.d.values[i] - asked.result.values[i];
    if (std::isfinite(error) && asked.magnitude.values[i] > 0 && !x.is_blurred(i))
      largest = std::max(largest, std::abs(error) / asked.magnitude.values[i]);
  }
  return largest;
}

/// Faults that every output agrees with although the bound of honest rounding hides them: the error
/// falls by this factor.
Faults hidden_faults(const ProductNumbers& x, const Expected& asked,
                     const Interrupted& interrupted) {
  constexpr double clear_fall = 12;
  ProductNumbers y = x;
  y.most_error = error_of(x, asked) / clear_fall;
  if (y.most_error == 0) return {};
  return first_that_fits(y, hidden, interrupted);
}

}  // namespace

std::string_view meaning_of(Verdict verdict) {
  constexpr std::array<std::string_view, 5> meanings = {
      "a plan gives every bit of it", "every element is the exact result rounded once",
      "no element is further from the exact result than rounding takes it",
      "some elements are further from the exact result than rounding takes them",
      "an instruction need not multiply and add its operands as numbers"};
  return meanings[static_cast<std::size_t>(verdict)];
}

Judgement judge(const ProductNumbers& product, const WholeProduct& whole,
                const Interrupted& interrupted) {
  ProductNumbers x = product;
  Judgement result;
  result.outputs = x.m() * x.n();
  const Expected asked = x.asked();
  result.largest_error = largest_error(x, asked);
  if (is_rounded_once(x)) {
    result.verdict = Verdict::rounded_once;
    return result;
  }
  // A narrower format that D went through is looked at apart from everything else.
  Faults conversions;
  WholeProduct converted = whole;
  if (const auto held = is_smooth(x.activation) ? std::nullopt : held_format(x)) {
    ProductNumbers y = x;
    y.output = *held;
    const bool to_nearest = agrees(y, asked);
    y.spacings = 1;
    const bool truncated = !to_nearest && agrees(y, asked);
    y.spacings = truncated ? 1 : 0.5;
    conversions = {held_fault(*held, truncated)};
    x = y;
    converted.output = *held;
    converted.spacings = x.spacings;
  }
  const Disagreement wrong = disagreement(x, asked);
  result.wrong = wrong.count;
  result.examples = examples_of(x, wrong);
  Faults faults;
  if (wrong.count == 0) {
    faults = find_saturation(x);
    if (faults.empty()) faults = find_small_constant(x);
    if (faults.empty()) faults = hidden_faults(x, asked, interrupted);
  } else {
    // A conversion takes a few outputs beyond the bound of honest rounding, here and there.
    faults = find_input_conversion(x);
    if (faults.empty()) faults = find_scaled_operand(x);
    if (faults.empty()) faults = find_flushed_results(x);
    if (faults.empty()) faults = find_other_rounding(x);
    if (faults.empty()) faults = find_rounded_products(x);
    if (faults.empty()) faults = find_blank(x, extent_of(wrong, x.n()));
    if (faults.empty()) faults = not_a_number(x, wrong);
    if (faults.empty()) faults = first_that_fits(x, all_but_last, interrupted);
    if (faults.empty()) faults = find_misread_matrix(converted);
    if (faults.empty()) faults = find_running_sums(converted);
    if (faults.empty()) faults = in_parts(x, wrong, interrupted);
    if (faults.empty()) faults = find_multiples(x);
    if (faults.empty()) faults = find_narrow_accumulator(x);
    if (faults.empty()) {
      faults = find_some_function(x);
      // Its values may be in a narrow format by chance.
      if (!faults.empty()) conversions.clear();
    }
    if (faults.empty()) {
      faults = {unknown(x, asked, wrong)};
      // The format may be one by chance.
      conversions.clear();
    }
  }
  const bool is_honest = std::all_of(faults.begin(), faults.end(), [](const Fault& fault) {
    return is_conversion(fault.kind) && !fault.value;
  });
  result.verdict = is_honest ? Verdict::valid_rounding : Verdict::wrong;
  result.faults = std::move(faults);
  result.faults.insert(result.faults.end(), conversions.begin(), conversions.end());
  return result;
}

Judgement judge(const ProductNumbers& x, const Interrupted& interrupted) {
  const auto reader = [](const RealMatrix& matrix) -> WholeProduct::Matrix {
    if (matrix.empty()) return {};
    return [&matrix](std::int64_t i, std::int64_t j) { return matrix(i, j); };
  };
  return judge(x,
               {x.m(), x.n(), x.k(), reader(x.a), reader(x.b), reader(x.c), reader(x.bias),
                reader(x.d), x.alpha, x.beta, x.input, x.output},
               interrupted);
}

}  // namespace guardbit::emulator
