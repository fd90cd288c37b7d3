#include "emulator/faults/find_faults.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <span>
#include <utility>

#include "emulator/faults/first_faults.hpp"
#include "emulator/faults/rounded_parts.hpp"
#include "formats/support/stop.hpp"

namespace guardbit::emulator {

namespace {

using Hypothesis = Faults (*)(const ProductNumbers&);
using Interrupted = std::function<bool()>;

/// Those that speak of all outputs, simple ones first. Numbers that nothing explains, in a part of
/// an operand, come last: of all of D they are looked for after its parts.
constexpr Hypothesis of_all[] = {
    find_factors,         find_wrapping,          find_activation,         find_softmax,
    find_dropped_outputs, find_output_conversion, find_input_conversion,   find_k_weights,
    find_wrong_elements,  find_permuted_lines,    find_line_changes,       find_k_range,
    find_stale_tile,      find_k_sources,         find_shuffled_fragments, find_unmasked_tail,
    find_wrong_tile};
constexpr auto all_but_last = std::span(of_all).first(std::size(of_all) - 1);

/// What a kernel may do that leaves every output within the bound of honest rounding.
constexpr Hypothesis hidden[] = {find_k_weights, find_k_sources};

/// They take a few outputs beyond the bound of honest rounding, here and there.
constexpr Hypothesis conversions[] = {find_input_conversion, find_scaled_operand,
                                      find_flushed_results,  find_other_rounding,
                                      find_rounded_products, find_overflow};

Faults first_that_fits(const ProductNumbers& x, std::span<const Hypothesis> hypotheses) {
  for (const Hypothesis hypothesis : hypotheses) {
    formats::check_stop();
    if (Faults faults = hypothesis(x); !faults.empty()) return faults;
  }
  return {};
}

/// What explains these rows and columns of D.
Faults in_lines_of(const ProductNumbers& x, const Region& region,
                   std::span<const Hypothesis> hypotheses) {
  Faults faults = first_that_fits(x.selected(region.rows, region.columns), hypotheses);
  for (Fault& fault : faults) {
    if (fault.kind == FaultKind::wrong_element) continue;
    if (fault.rows.empty()) fault.rows = x.rows.places(region.rows);
    if (fault.columns.empty()) fault.columns = x.columns.places(region.columns);
    fault.text = "in " + text_of(x, region) + ": " + fault.text;
  }
  return faults;
}

/// What happened in one region of D.
Faults in_region(const ProductNumbers& x, const WholeProduct& whole, const Region& region,
                 std::span<const Hypothesis> hypotheses) {
  for (const auto look : {find_blank, find_misplaced})
    if (Faults faults = look(x, region); !faults.empty()) return faults;
  if (Faults faults = find_far_tile(whole, x, region); !faults.empty()) return faults;
  const bool is_all = std::ssize(region.rows) * std::ssize(region.columns) * 10 > x.m() * x.n() * 9;
  return is_all ? Faults{} : in_lines_of(x, region, hypotheses);
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
  // Zeros in a D without negative numbers are those of a function.
  const bool is_positive =
      std::none_of(x.d.values.begin(), x.d.values.end(), [](double other) { return other < 0; });
  if (*value == 0 && is_positive) return {};
  const Region region = extent_of(wrong, x.n());
  return {{.kind = FaultKind::not_written,
           .rows = x.rows.places(region.rows),
           .columns = x.columns.places(region.columns),
           .value = value,
           .operand = "d",
           .text = std::to_string(wrong.count) + " elements of D, all that are wrong, are " +
                   text_of(*value) + ", in " + text_of(x, region) +
                   ": nothing was written there, or a mask was"}};
}

/// What happened in parts of D: where rows and columns with wrong outputs meet, else in each of the
/// areas.
Faults in_parts(const ProductNumbers& x, const WholeProduct& whole, const Disagreement& wrong) {
  constexpr std::size_t most = 6;
  const Region extent = extent_of(wrong, x.n());
  if (Faults faults = in_region(x, whole, extent, all_but_last); !faults.empty()) return faults;
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
    Faults faults = in_region(x, whole, areas[i], of_all);
    if (!faults.empty()) ++named;
    if (faults.empty())
      faults = {
          {.kind = FaultKind::unknown,
           .rows = x.rows.places(areas[i].rows),
           .columns = x.columns.places(areas[i].columns),
           .text = "in " + text_of(x, areas[i]) + ": wrong for no reason that has a name here"}};
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
                   text_of(x, region)}};
}

Faults one_fault(const ProductNumbers& x, const WholeProduct& whole, const Disagreement& wrong);

/// A matrix that is read from other places, as some outputs show, and what the others show besides.
Faults misread_matrix(const ProductNumbers& x, const WholeProduct& whole) {
  Faults faults = find_misread_matrix(whole);
  if (faults.empty()) return {};
  const auto mended = reread_as(x, whole, faults[0]);
  if (!mended) return faults;
  const Disagreement left = disagreement(*mended, mended->asked());
  if (left.count == 0) return faults;
  const Faults more = one_fault(*mended, {}, left);
  if (may_follow(more, faults)) faults.insert(faults.end(), more.begin(), more.end());
  return faults;
}

/// Elements of K that a kernel treated otherwise in one tile of D: most of what explains all of D
/// takes long, and does not explain a tile.
Faults k_of_a_tile(const ProductNumbers& x, const Disagreement& wrong) {
  constexpr std::int64_t shortest = 8;
  constexpr Hypothesis of_k[] = {find_k_weights, find_k_range};
  const Region tile = extent_of(wrong, x.n());
  const std::int64_t rows = std::ssize(tile.rows), columns = std::ssize(tile.columns);
  const bool is_tile =
      rows >= shortest && columns >= shortest && 2 * rows <= x.m() && 2 * columns <= x.n();
  // Some elements agree by chance.
  if (!is_tile || wrong.count * 10 < rows * columns * 9) return {};
  return in_lines_of(x, tile, of_k);
}

/// What explains D by itself.
Faults one_fault(const ProductNumbers& x, const WholeProduct& whole, const Disagreement& wrong) {
  Faults faults = first_that_fits(x, conversions);
  if (faults.empty()) faults = find_blank(x, extent_of(wrong, x.n()));
  if (faults.empty()) faults = not_a_number(x, wrong);
  if (faults.empty()) faults = k_of_a_tile(x, wrong);
  if (faults.empty()) faults = first_that_fits(x, all_but_last);
  if (faults.empty()) faults = misread_matrix(x, whole);
  if (faults.empty()) faults = find_running_sums(whole);
  if (faults.empty()) faults = in_parts(x, whole, wrong);
  if (faults.empty()) faults = find_multiples(x);
  return faults;
}

/// What D shows although something else hides it, likely ones first.
FirstFaults first_faults(const ProductNumbers& x, const WholeProduct& whole) {
  using Guess = FirstFaults (*)(const ProductNumbers&, const WholeProduct&);
  constexpr Guess guesses[] = {guess_blank_areas,    guess_missing_addend,   guess_factors,
                               guess_permuted_lines, guess_activation,       guess_range,
                               guess_k_weights,      guess_input_conversion, guess_k_sources,
                               guess_stale_tile,     guess_misread_matrix,   guess_line_constants,
                               guess_misplaced_tiles};
  const double typical = typical_error(x);
  FirstFaults all;
  for (const Guess guess : guesses)
    for (FirstFault& first : guess(x, whole))
      if (is_nearer(first, typical)) all.push_back(std::move(first));
  // Those that leave least are likely. Numbers that were fitted line by line leave less than what
  // is right, too, but not much less.
  const auto rank = [](const FirstFault& first) {
    const Fault& fault = first.faults[0];
    return (fault.kind == FaultKind::bias && !fault.value ? 2 : 1) * first.left;
  };
  std::stable_sort(all.begin(), all.end(),
                   [&](const FirstFault& p, const FirstFault& q) { return rank(p) < rank(q); });
  return all;
}

/// Two faults that explain D together: what `first` left is another one.
Faults two_faults(const FirstFault& first) {
  const Disagreement wrong = disagreement(first.mended, first.mended.asked());
  if (wrong.count == 0) return first.faults;
  const Faults second = one_fault(first.mended, first.whole, wrong);
  if (second.empty() || !may_follow(second, first.faults)) return {};
  Faults both = first.faults;
  both.insert(both.end(), second.begin(), second.end());
  return both;
}

/// The same where what is left shows that parts of K were rounded to 16 bits.
Faults two_faults_beside_parts(FirstFaults& all, std::int64_t k) {
  for (FirstFault& first : all) {
    formats::check_stop();
    first.parts = find_rounded_parts(first.mended);
    if (!first.parts) continue;
    first.mended.parts_unit = first.whole.parts_unit = first.parts->unit;
    Faults faults = two_faults(first);
    if (faults.empty()) continue;
    faults.push_back(rounded_parts_fault(*first.parts, k));
    return faults;
  }
  return {};
}

bool named_in_part(const Faults& faults) {
  return std::any_of(faults.begin(), faults.end(),
                     [](const Fault& fault) { return fault.kind == FaultKind::unknown; });
}

/// What explains D by itself, else two faults, else errors of narrow sums.
Faults explained(const ProductNumbers& x, const WholeProduct& whole, const Disagreement& wrong) {
  Faults faults = one_fault(x, whole, wrong);
  // Parts of D of which some have no name may be what another fault leaves.
  const Faults in_part = named_in_part(faults) ? std::exchange(faults, {}) : Faults{};
  if (!faults.empty()) return faults;
  FirstFaults first = first_faults(x, whole);
  if (x.parts_unit == 0) faults = two_faults_beside_parts(first, x.k());
  if (faults.empty() && in_part.empty()) faults = find_narrow_accumulator(x);
  for (std::size_t i = 0; i < first.size() && faults.empty(); ++i) {
    formats::check_stop();
    faults = two_faults(first[i]);
  }
  return faults.empty() ? in_part : faults;
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
                  text_of(x, region) + ", for no reason that has a name here; D is " +
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
Faults hidden_faults(const ProductNumbers& x, const Expected& asked) {
  constexpr double clear_fall = 12;
  ProductNumbers y = x;
  y.most_error = error_of(x, asked) / clear_fall;
  if (y.most_error == 0) return {};
  return first_that_fits(y, hidden);
}

}  // namespace

std::string_view meaning_of(Verdict verdict) {
  constexpr std::array<std::string_view, 5> texts = {
      "a plan gives every bit of it", "every element is the exact result rounded once",
      "no element is further from the exact result than rounding takes it",
      "some elements are further from the exact result than rounding takes them",
      "an instruction need not multiply and add its operands as numbers"};
  return texts[static_cast<std::size_t>(verdict)];
}

Judgement judge(const ProductNumbers& product, const WholeProduct& whole,
                const Interrupted& interrupted) {
  ProductNumbers x = product;
  const Expected asked = x.asked();
  Judgement result;
  result.outputs = x.m() * x.n();
  result.largest_error = largest_error(x, asked);
  if (is_rounded_once(x)) {
    result.verdict = Verdict::rounded_once;
    return result;
  }
  // A narrower format that D went through is looked at apart from everything else.
  Faults narrower;
  WholeProduct converted = whole;
  if (const auto held = is_smooth(x.activation) ? std::nullopt : held_format(x)) {
    ProductNumbers y = x;
    y.output = *held;
    const bool to_nearest = agrees(y, asked);
    y.spacings = 1;
    const bool truncated = !to_nearest && agrees(y, asked);
    y.spacings = truncated ? 1 : 0.5;
    narrower = {held_fault(*held, truncated)};
    x = y;
    converted.output = *held;
    converted.spacings = x.spacings;
  }
  // So are parts of K that were rounded to 16 bits.
  if (const auto parts = find_rounded_parts(x)) {
    result.split = parts->split;
    x.parts_unit = converted.parts_unit = parts->unit;
    narrower.push_back(rounded_parts_fault(*parts, x.k()));
  }
  const Disagreement wrong = disagreement(x, asked);
  result.wrong = wrong.count;
  result.examples = examples_of(x, wrong);
  Faults faults;
  if (wrong.count == 0 || agrees_at_worst(x, asked)) {
    result.wrong = 0;
    result.examples.clear();
    result.is_cut_short = !formats::ends_before(interrupted, [&] {
      faults = find_saturation(x);
      if (faults.empty() && wrong.count == 0) faults = find_flushed_results(x);
      if (faults.empty() && wrong.count == 0) faults = find_small_constant(x);
      if (faults.empty() && wrong.count != 0) faults = first_that_fits(x, conversions);
      if (faults.empty()) faults = hidden_faults(x, asked);
    });
  } else {
    result.is_cut_short =
        !formats::ends_before(interrupted, [&] { faults = explained(x, converted, wrong); });
    // What was not looked at may explain it better.
    if (faults.empty() && !result.is_cut_short) {
      faults = find_some_function(x);
      // Its values may be in a narrow format by chance.
      if (!faults.empty()) narrower.clear();
    }
    if (faults.empty()) {
      faults = {unknown(x, asked, wrong)};
      // The format may be one by chance.
      narrower.clear();
    }
  }
  const bool is_honest = std::all_of(faults.begin(), faults.end(), [](const Fault& fault) {
    return is_conversion(fault.kind) && !fault.value;
  });
  result.verdict = is_honest ? Verdict::valid_rounding : Verdict::wrong;
  // Sums whose format is known otherwise are no parts.
  const bool has_narrow_sums = std::any_of(faults.begin(), faults.end(), [](const Fault& fault) {
    return fault.kind == FaultKind::narrow_accumulator;
  });
  if (has_narrow_sums)
    std::erase_if(narrower,
                  [](const Fault& fault) { return fault.kind == FaultKind::narrow_accumulator; });
  result.faults = std::move(faults);
  result.faults.insert(result.faults.end(), narrower.begin(), narrower.end());
  return result;
}

Judgement wrong_judgement(const ProductNumbers& x, Faults faults) {
  const Expected asked = x.asked();
  const Disagreement wrong = disagreement(x, asked);
  return {.verdict = Verdict::wrong,
          .faults = std::move(faults),
          .wrong = wrong.count,
          .outputs = x.m() * x.n(),
          .examples = examples_of(x, wrong),
          .largest_error = largest_error(x, asked)};
}

Judgement judge(const ProductNumbers& x, const Interrupted& interrupted) {
  const auto reader = [](const RealMatrix& matrix) -> WholeProduct::Matrix {
    if (matrix.empty()) return {};
    return [&matrix](std::int64_t i, std::int64_t j) { return matrix(i, j); };
  };
  return judge(x,
               {x.m(), x.n(), x.k(), reader(x.a), reader(x.b), reader(x.c), reader(x.bias),
                reader(x.d), x.alpha, x.beta, x.input, x.output, x.spacings, x.parts_unit,
                is_smooth(x.activation) ? Activation::none : x.activation},
               interrupted);
}

}  // namespace guardbit::emulator
