#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "formats/support/printable.hpp"
#include "tools/console/columns.hpp"
#include "tools/console/counted.hpp"
#include "tools/console/terminal.hpp"
#include "tools/trace/trace_plots.hpp"
#include "tools/trace/trace_results.hpp"

namespace guardbit::tools {

using experiments::ScaleWindow;
using experiments::TraceStatistics;

namespace {

bool any_gradient(const TraceResults& results) {
  return std::ranges::any_of(results.tensors,
                             [](const TracedTensor& t) { return t.meaning.is_gradient(); });
}

/// The gradients, or where no name says what is one, everything.
std::vector<const TracedTensor*> asked_tensors(const TraceResults& results) {
  const bool any = any_gradient(results);
  std::vector<const TracedTensor*> asked;
  for (const TracedTensor& t : results.tensors)
    if (!any || t.meaning.is_gradient()) asked.push_back(&t);
  return asked;
}

std::string power_text(int exponent) { return "2^" + std::to_string(exponent); }

/// "from 2^3 to 2^9", "of 2^3"
std::string range_text(const ScaleWindow& window) {
  if (*window.first == *window.last) return "of " + power_text(*window.first);
  return "from " + power_text(*window.first) + " to " + power_text(*window.last);
}

std::string scale_text(double scale) {
  int exponent = 0;
  return scale > 0 && std::frexp(scale, &exponent) == 0.5 ? power_text(exponent - 1)
                                                          : number(scale, "%.6g");
}

double underflow_percent(const TraceResults& results, const TraceStatistics& s, std::size_t format,
                         int scale) {
  const auto& scales = results.questions.scales;
  const auto at = static_cast<std::size_t>(std::ranges::find(scales, scale) - scales.begin());
  const auto& outcome = s.outcomes[results.questions.storing(format, at)];
  return percent_of(outcome.underflow, s.nonzero());
}

std::string percent_text(double percent) { return number(percent, "%.3g") + " %"; }

std::string step_and_rank(const TracedTensor& tensor) {
  std::string text;
  if (tensor.meaning.step) text += " of step " + std::to_string(*tensor.meaning.step);
  if (tensor.meaning.rank) text += " of rank " + std::to_string(*tensor.meaning.rank);
  return text;
}

/// The format and scale for these numbers; the narrowest that is safe, or that which loses least.
void choose(const TraceResults& results, const TraceStatistics& s, TraceAdvice& advice) {
  advice.format = recommended_format(results, s);
  advice.is_safe = advice.format.has_value();
  if (advice.is_safe) {
    advice.scale = window_of(results, *advice.format, s).recommended;
    return;
  }
  double least = 0;
  for (std::size_t f = 0; f < results.questions.formats.size(); ++f) {
    const auto scale = window_of(results, f, s).recommended;
    if (!scale) continue;
    const double lost = underflow_percent(results, s, f, *scale);
    if (advice.scale && lost >= least) continue;
    advice.format = f;
    advice.scale = scale;
    least = lost;
  }
}

/// Tensors whose numbers the advice does not serve, and what serves them.
void add_exceptions(const TraceResults& results, TraceAdvice& advice) {
  constexpr std::size_t most = 5;
  const std::size_t format = *advice.format;
  std::map<std::string, TraceStatistics> tensors;
  for (const TracedTensor* const t : asked_tensors(results))
    tensors[t->meaning.tensor_and_role()].add(t->statistics);
  if (tensors.size() < 2) return;
  std::vector<std::pair<double, std::string>> found;
  for (const auto& [name, s] : tensors) {
    const double lost = underflow_percent(results, s, format, *advice.scale);
    if (lost <= 100 * results.tolerance) continue;
    const ScaleWindow own = window_of(results, format, s);
    std::string text = formats::printable(name, 80) + " loses " + percent_text(lost) + " there";
    if (own.first) {
      text += ", and nothing to speak of with a scale of its own " + range_text(own);
    } else if (const auto other = recommended_format(results, s)) {
      text += ", and keeps its numbers in " + results.questions.formats[*other];
    }
    found.emplace_back(lost, std::move(text));
  }
  std::ranges::sort(found, std::greater<>());
  for (std::size_t i = 0; i < std::min(found.size(), most); ++i)
    advice.sentences.push_back("Exception: " + found[i].second + ".");
  if (found.size() > most)
    advice.sentences.push_back("Exceptions: " + std::to_string(found.size() - most) +
                               " more tensors lose more than is tolerated.");
}

void add_recipes(const TraceResults& results, TraceAdvice& advice) {
  const auto total = finite_recipes(results).statistics;
  std::optional<std::pair<double, std::size_t>> best;
  for (std::size_t r = 0; r < results.questions.recipes.size(); ++r) {
    if (!total.outcomes[r]) continue;
    const auto sqnr = experiments::sqnr_db(total.signal, *total.outcomes[r]);
    if (sqnr && (!best || *sqnr > best->first)) best = {*sqnr, r};
  }
  if (!best) return;
  const experiments::Recipe& recipe = results.questions.recipes[best->second];
  advice.sentences.push_back(
      "Of the formats with scales of their own " + recipe.name + " keeps most: SQNR " +
      number(best->first, "%.2f") + " dB at " +
      number(bits_per_element(total.signal, *total.outcomes[best->second]), "%.2f") +
      " bits an element.");
}

void add_bad_tensors(const TraceResults& results, TraceAdvice& advice) {
  std::size_t count = 0;
  for (const TracedTensor& t : results.tensors) count += t.first_nonfinite ? 1U : 0U;
  if (count == 0) return;
  const TracedTensor& first = *first_nonfinite(results);
  advice.sentences.push_back(counted(count, "tensor") + (count == 1 ? " holds" : " hold") +
                             " infinities or NaNs, which no scale mends (first " +
                             formats::printable(first.name, 80) + step_and_rank(first) +
                             "); the percentages are of the finite numbers.");
}

}  // namespace

std::vector<TraceGroups> groups_of(const TraceResults& results) {
  using Key = std::pair<std::uint64_t, std::string>;
  const auto by = [&](const std::string& what, const auto& key_of) {
    TraceGroups all = {what, {}};
    std::map<Key, TraceGroup> groups;
    std::size_t most = 0;
    for (const TracedTensor& t : results.tensors) {
      const std::optional<Key> key = key_of(t);
      if (!key) continue;
      TraceGroup& group = groups[*key];
      group.name = key->second;
      group.statistics.add(t.statistics);
      most = std::max(most, ++group.tensors);
    }
    if (groups.size() > 1 && most > 1)
      for (auto& [key, group] : groups) all.groups.push_back(std::move(group));
    return all;
  };
  const auto of_number = [](const std::optional<std::uint64_t>& x) {
    return x ? std::optional(Key(*x, std::to_string(*x))) : std::nullopt;
  };
  std::vector<TraceGroups> all = {
      by("step", [&](const TracedTensor& t) { return of_number(t.meaning.step); }),
      by("rank", [&](const TracedTensor& t) { return of_number(t.meaning.rank); }),
      by("tensor", [&](const TracedTensor& t) {
        const std::string role = t.meaning.role.empty() ? "" : " (" + t.meaning.role + ")";
        return std::optional(Key(0, formats::printable(t.meaning.tensor, 80) + role));
      })};
  std::erase_if(all, [](const TraceGroups& g) { return g.groups.empty(); });
  return all;
}

TraceStatistics gradients_of(const TraceResults& results) {
  TraceStatistics gradients;
  gradients.outcomes.resize(results.questions.storings.size());
  for (const TracedTensor* const t : asked_tensors(results)) gradients.add(t->statistics);
  return gradients;
}

std::string recorded_scale_text(const std::vector<std::optional<double>>& scales) {
  double least = 0, most = 0;
  for (const std::optional<double>& scale : scales) {
    if (!scale || *scale == 1) continue;
    least = least == 0 ? *scale : std::min(least, *scale);
    most = std::max(most, *scale);
  }
  if (least == 0) return {};
  const bool is_one = least == most;
  return "The recorded loss scale" + std::string(is_one ? ", " : "s, from ") + scale_text(least) +
         (is_one ? "," : " to " + scale_text(most) + ",") + (is_one ? " is" : " are") +
         " in the numbers already: every scale here is on top of " + (is_one ? "it." : "them.");
}

TraceAdvice advice_of(const TraceResults& results) {
  TraceAdvice advice;
  if (results.questions.formats.empty() || results.tensors.empty()) return advice;
  const TraceStatistics s = gradients_of(results);
  const std::string what = any_gradient(results) ? "the gradients" : "these numbers";
  if (s.nonzero() == 0) return advice;
  choose(results, s, advice);
  if (!advice.format || !advice.scale) {
    advice.sentences.push_back("At every scale that was tried " + what +
                               " overflow in every format: try smaller ones (--scales).");
  } else {
    const std::string& format = results.questions.formats[*advice.format];
    const double lost = underflow_percent(results, s, *advice.format, *advice.scale);
    const ScaleWindow window = window_of(results, *advice.format, s);
    if (advice.is_safe) {
      advice.sentences.push_back(
          "Use " + format + " with the scale " + power_text(*advice.scale) + " for " + what +
          ": nothing overflows and " + percent_text(lost) +
          " of the numbers other than zero underflow; it is the narrowest format here for which "
          "that holds, at " +
          (*window.first == *window.last ? "that scale alone" : "scales " + range_text(window)) +
          ".");
    } else {
      advice.sentences.push_back("No format here keeps " + what + " with one scale; " + format +
                                 " with the scale " + power_text(*advice.scale) +
                                 " loses least: nothing overflows, but " + percent_text(lost) +
                                 " of the numbers other than zero underflow (" +
                                 percent_text(100 * results.tolerance) + " are tolerated).");
    }
    add_exceptions(results, advice);
  }
  add_recipes(results, advice);
  add_bad_tensors(results, advice);
  std::vector<std::optional<double>> scales;
  for (const TracedTensor& t : results.tensors) scales.push_back(t.loss_scale);
  if (std::string text = recorded_scale_text(scales); !text.empty())
    advice.sentences.push_back(std::move(text));
  return advice;
}

nlohmann::ordered_json to_json(const TraceResults& results, const TraceAdvice& advice) {
  return {
      {"format", advice.format ? nlohmann::ordered_json(results.questions.formats[*advice.format])
                               : nlohmann::ordered_json(nullptr)},
      {"scale_log2", or_null(advice.scale)},
      {"safe", advice.is_safe},
      {"text", advice.sentences}};
}

}  // namespace guardbit::tools
