#include <algorithm>
#include <set>

#include "tools/console/terminal.hpp"
#include "tools/report/page.hpp"
#include "tools/trace/trace_plots.hpp"
#include "tools/trace/trace_results.hpp"

namespace guardbit::tools {

using experiments::StoringOutcome;
using experiments::TraceStatistics;

namespace {

std::string power(int exponent) { return "2<sup>" + std::to_string(exponent) + "</sup>"; }

std::string or_dash(const std::optional<double>& value) {
  return value ? number(*value, "%.6g") : "–";
}
std::string or_dash(const std::optional<std::uint64_t>& value) {
  return value ? std::to_string(*value) : "–";
}

/// A cell with a share in percent, redder the more it is; without a whole there is no share.
std::string shaded(std::uint64_t part, std::uint64_t whole) {
  if (whole == 0) return "<td>–</td>";
  const double percent = percent_of(part, whole);
  return "<td style=\"background:rgba(var(--hot)," + number(percent / 125, "%.2f") + ")\">" +
         number(percent, "%.2f") + "%</td>";
}

/// Gradients by steps, coloured by the underflow of the first format at the first scale; all ranks
/// together.
std::string heat_map(const TraceResults& results) {
  std::set<std::uint64_t> steps;
  std::map<std::string, std::map<std::uint64_t, TraceStatistics>> rows;
  for (const TracedTensor& tensor : results.tensors) {
    if (!tensor.meaning.step || !(tensor.meaning.role.empty() || tensor.meaning.is_gradient()))
      continue;
    steps.insert(*tensor.meaning.step);
    const auto [cell, is_first] =
        rows[tensor.meaning.tensor_and_role()].try_emplace(*tensor.meaning.step, tensor.statistics);
    if (!is_first) cell->second.add(tensor.statistics);
  }
  if (steps.size() < 2) return {};
  std::string html = "<h2>Underflow by tensor and step, " + escaped(results.questions.formats[0]) +
                     " at " + power(results.questions.scales[0]) +
                     "</h2><div class=\"scroll\"><table><tr><th>tensor</th>";
  for (const std::uint64_t step : steps) html += "<th>" + std::to_string(step) + "</th>";
  html += "</tr>";
  for (const auto& [name, values] : rows) {
    html += "<tr><td>" + escaped(name) + "</td>";
    for (const std::uint64_t step : steps) {
      const auto at = values.find(step);
      html += at == values.end() ? "<td></td>"
                                 : shaded(at->second.outcomes[0].underflow, at->second.nonzero());
    }
    html += "</tr>";
  }
  return html + "</table></div>";
}

std::string decibels(const std::optional<double>& sqnr) {
  return sqnr ? number(*sqnr, "%.2f") : "–";
}

/// Cells of what a recipe did: underflow, saturation, SQNR, bits.
std::string recipe_cells(const experiments::RecipeStatistics& s, std::size_t recipe) {
  const auto& outcome = s.outcomes[recipe];
  if (!outcome) return "<td>–</td><td>–</td><td>–</td><td>–</td>";
  return shaded(outcome->underflow, s.signal.nonzero) +
         shaded(outcome->saturated, s.signal.finite) + "<td>" +
         decibels(experiments::sqnr_db(s.signal, *outcome)) + "</td><td>" +
         (s.signal.elements == 0 ? "–" : number(bits_per_element(s.signal, *outcome), "%.2f")) +
         "</td>";
}

constexpr const char* recipe_head =
    "<th>underflow</th><th>saturated</th><th>SQNR dB</th><th>bits</th>";

/// Formats whose scales follow from the numbers: of the whole trace.
std::string recipes(const TraceResults& results) {
  const std::vector<experiments::Recipe>& all = results.questions.recipes;
  if (all.empty()) return {};
  const FiniteRecipes finite = finite_recipes(results);
  const experiments::RecipeStatistics& total = finite.statistics;
  const bool is_flat = results.questions.layout == experiments::Layout::flat;
  std::string html =
      "<h2>Formats with scales of their own</h2><p class=\"quiet\">Blocks along " +
      std::string(is_flat ? "the flattened tensor" : "the last dimension") +
      ". SQNR: signal to quantisation noise; a dot for each tensor, the bar for all.</p>" +
      sqnr_plot(results, total) + "<div class=\"scroll\"><table><tr><th>format</th>" + recipe_head +
      "<th>lowest SQNR</th></tr>";
  for (std::size_t r = 0; r < all.size(); ++r) {
    const auto worst = lowest_sqnr(results, r);
    html += "<tr><td>" + escaped(all[r].name) + "</td>" + recipe_cells(total, r) + "<td>" +
            (worst ? number(worst->second, "%.2f") + ", " +
                         escaped(worst->first->meaning.place_text(worst->first->name))
                   : "–") +
            "</td></tr>";
  }
  html += "</table></div>";
  for (const TracedTensor* const bad : finite.left_out)
    html += "<p class=\"quiet\">Left out of these: " + escaped(bad->meaning.place_text(bad->name)) +
            ", which is not finite.</p>";
  return html;
}

/// Everything about a tensor or a group of them, folded.
std::string details(const TraceResults& results, const std::string& name,
                    const TraceStatistics& s) {
  const TraceQuestions& questions = results.questions;
  std::string html =
      "<details><summary>" + escaped(name) + "</summary><p>sum of magnitudes " +
      number(s.sum.nearest(), "%.17g") + ", of squares " + number(s.squares.nearest(), "%.17g") +
      "</p><div class=\"scroll\"><table><tr><th>format</th><th>scale</th><th>underflow</th><th>subnormal</th><th>overflow</th><th>mass lost</th></tr>";
  for (std::size_t f = 0; f < questions.formats.size(); ++f) {
    for (std::size_t k = 0; k < questions.scales.size(); ++k) {
      const StoringOutcome& o = s.outcomes[questions.storing(f, k)];
      const double mass = o.lost.is_zero() ? 0 : 100 * o.lost.nearest() / s.sum.nearest();
      html += "<tr><td>" + escaped(questions.formats[f]) + "</td><td>" +
              power(questions.scales[k]) + "</td><td>" + std::to_string(o.underflow) + "</td><td>" +
              std::to_string(o.subnormal) + "</td><td>" + std::to_string(o.overflow) + "</td><td>" +
              number(mass) + "%</td></tr>";
    }
  }
  const std::vector<experiments::Recipe>& recipes = questions.recipes;
  if (!recipes.empty())
    html += std::string("</table></div><div class=\"scroll\"><table><tr><th>format</th>") +
            recipe_head + "</tr>";
  for (std::size_t r = 0; r < recipes.size(); ++r)
    html += "<tr><td>" + escaped(recipes[r].name) + "</td>" + recipe_cells(s.recipes, r) + "</tr>";
  html += "</table></div><div class=\"scroll\"><table><tr><th>binade</th><th>numbers</th></tr>";
  for (const auto& [binade, count] : s.binades)
    html += "<tr><td>" + power(binade) + "</td><td>" + std::to_string(count) + "</td></tr>";
  return html + "</table></div></details>";
}

/// The safe scales, or else the best one that does not overflow.
std::string window_html(const experiments::ScaleWindow& window) {
  if (!window.recommended) return "overflows";
  if (!window.first)
    return "<span class=\"quiet\">none; best " + power(*window.recommended) + "</span>";
  if (*window.first == *window.last) return power(*window.first);
  return power(*window.first) + " to " + power(*window.last);
}

std::string windows(const TraceResults& results,
                    const std::vector<std::pair<std::string, TraceStatistics>>& groups) {
  std::string html = "<div class=\"scroll\"><table><tr><th></th>";
  for (const std::string& format : results.questions.formats)
    html += "<th>" + escaped(format) + "</th>";
  html += "<th>narrowest</th></tr>";
  for (const auto& [name, s] : groups) {
    html += "<tr><td>" + escaped(name) + "</td>";
    for (std::size_t f = 0; f < results.questions.formats.size(); ++f) {
      const auto window = window_of(results, f, s);
      html += "<td>" + window_html(window) + "</td>";
    }
    const auto format = recommended_format(results, s);
    html += "<td>" + (format ? escaped(results.questions.formats[*format]) : "none") + "</td></tr>";
  }
  return html + "</table></div>";
}

/// Underflow at the first scale, and at the recommended one where that is another.
std::string loss_text(const TraceResults& results, std::size_t format, const TraceStatistics& s) {
  if (s.nonzero() == 0) return "–";
  const std::vector<int>& scales = results.questions.scales;
  const auto at = [&](std::size_t k) {
    const StoringOutcome& outcome = s.outcomes[results.questions.storing(format, k)];
    return number(percent_of(outcome.underflow, s.nonzero()), "%.3g") + "%";
  };
  const auto window = window_of(results, format, s);
  if (!window.recommended) return at(0) + ", overflows";
  const auto best = std::find(scales.begin(), scales.end(), *window.recommended) - scales.begin();
  if (best == 0) return at(0);
  return at(0) + " → " + at(static_cast<std::size_t>(best)) + " at " + power(*window.recommended);
}

/// What updates do to the weights.
std::string updates(const TraceResults& results) {
  std::string html =
      "<div class=\"scroll\"><table><tr><th>tensor</th><th>step</th><th>update / weight</th>";
  for (const std::string& format : results.questions.formats)
    html += "<th>stale in " + escaped(format) + "</th>";
  html += "</tr>";
  for (const TracedUpdate& update : results.updates) {
    html += "<tr><td>" + escaped(update.tensor) + "</td><td>" + or_dash(update.step) + "</td><td>" +
            or_dash(update.ratio()) + "</td>";
    for (const std::uint64_t stale : update.effect.stale)
      html += shaded(stale, update.effect.changes);
    html += "</tr>";
  }
  return html + "</table></div>";
}

/// Which files, how they were read, and the loss scales that were recorded with them.
std::string sources(const TraceResults& results, const std::string& command) {
  std::set<std::string> files;
  std::set<double> scales;
  for (const TracedTensor& tensor : results.tensors) {
    files.insert(tensor.file);
    if (tensor.loss_scale) scales.insert(*tensor.loss_scale);
  }
  std::string html = "<p>";
  constexpr std::size_t most_files = 8;
  std::size_t count = 0;
  for (const std::string& file : files) {
    if (++count > most_files) break;
    html += (count == 1 ? "<code>" : ", <code>") + escaped(file) + "</code>";
  }
  if (files.size() > most_files)
    html += " and " + std::to_string(files.size() - most_files) + " more files";
  html += ".";
  if (!scales.empty()) {
    html += " Recorded loss scale: " + number(*scales.begin(), "%.9g") +
            (scales.size() == 1 ? "" : " to " + number(*scales.rbegin(), "%.9g")) +
            "; the numbers are as they were recorded.";
  }
  return html + "</p><pre class=\"wraps\"><code>" + escaped(command) + "</code></pre>";
}

/// A row per tensor, those first that lose most in the first format at the first scale.
std::string worst_first(const TraceResults& results,
                        const std::vector<const TracedTensor*>& order) {
  std::string html =
      "<div class=\"scroll\"><table><tr><th>tensor</th><th>step</th><th>rank</th><th>elements</th><th>zeros</th><th>infs</th><th>NaNs</th><th>smallest</th><th>largest</th>";
  for (const std::string& format : results.questions.formats)
    html += "<th>" + escaped(format) + "</th>";
  html += "<th>narrowest</th></tr>";
  for (const TracedTensor* tensor : order) {
    const TraceStatistics& s = tensor->statistics;
    html += "<tr><td>" + escaped(tensor->name) + "</td><td>" + or_dash(tensor->meaning.step) +
            "</td><td>" + or_dash(tensor->meaning.rank) + "</td><td>" + std::to_string(s.elements) +
            "</td><td>" + number(percent_of(s.zeros, s.elements)) + "%</td><td>" +
            std::to_string(s.infinities) + "</td><td>" + std::to_string(s.nans) + "</td><td>" +
            or_dash(s.amin_nonzero) + "</td><td>" + or_dash(s.amax) + "</td>";
    for (std::size_t f = 0; f < results.questions.formats.size(); ++f)
      html += "<td>" + loss_text(results, f, s) + "</td>";
    const auto narrowest = recommended_format(results, s);
    html += "<td>" + (narrowest ? escaped(results.questions.formats[*narrowest]) : "none") +
            "</td></tr>";
  }
  return html + "</table></div>";
}

}  // namespace

std::string trace_report(const TraceResults& results, const std::string& command) {
  const TraceStatistics total = total_of(results);
  std::vector<std::pair<std::string, TraceStatistics>> groups;
  for (const auto& [role, statistics] : by_role(results)) groups.emplace_back(role, statistics);
  groups.emplace_back("all", total);
  std::vector<const TracedTensor*> order;
  for (const TracedTensor& tensor : results.tensors) order.push_back(&tensor);
  const auto loss = [](const TracedTensor* tensor) {
    return percent_of(tensor->statistics.outcomes[0].underflow, tensor->statistics.nonzero());
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](const TracedTensor* a, const TracedTensor* b) { return loss(a) > loss(b); });

  std::string html =
      page_head("Gradient trace") + "<h1>Gradient trace</h1><p>" +
      std::to_string(results.tensors.size()) + " tensors, " + std::to_string(total.elements) +
      " elements, " + number(percent_of(total.zeros, total.elements)) + "% zeros, " +
      std::to_string(total.infinities) + " infinities, " + std::to_string(total.nans) +
      " NaNs. Policy " + escaped(results.policy) + ", product with the scale " +
      (results.exact_product ? "exact" : "rounded to FP32") + ".</p>" + sources(results, command);
  if (const TracedTensor* first = first_nonfinite(results)) {
    html += "<p><strong>First " + std::string(first->first_is_nan ? "NaN" : "infinity") +
            "</strong>: " + escaped(first->meaning.place_text(first->name)) + ", index " +
            std::to_string(*first->first_nonfinite) + ".</p>";
  }
  const TraceAdvice advice = advice_of(results);
  if (!advice.sentences.empty()) html += "<h2>Recommendation</h2>";
  for (const std::string& sentence : advice.sentences) html += "<p>" + escaped(sentence) + "</p>";
  html +=
      "<h2>Numbers by binade</h2><p class=\"quiet\">Below the axis: what each format holds at " +
      power(results.questions.scales[0]) + ", paler where its numbers are subnormal.</p>";
  const bool has_roles = groups.size() > 1;
  html += "<div class=\"plots\">";
  for (const auto& [name, statistics] : groups) {
    if (has_roles && name == "all") continue;
    html += "<section>" + (has_roles ? "<h3>" + escaped(name) + "</h3>" : "") +
            histogram_plot(results, name, statistics) + "</section>";
  }
  html += "</div>";
  const std::string trends = trend_plot(results);
  html +=
      "<h2>Loss of gradients by scale</h2>" + loss_plot(results, gradients_of(results)) +
      (trends.empty() ? "" : "<h2>Largest magnitude by step</h2>" + trends) +
      "<h2>Safe scales</h2><p class=\"quiet\">Nothing overflows and at most " +
      number(100 * results.tolerance) + "% of the numbers other than zero underflow.</p>" +
      windows(results, groups) + recipes(results) + heat_map(results) +
      (results.updates.empty()
           ? ""
           : "<h2>Updates</h2><p class=\"quiet\">Root mean square over that of the weights; stale: "
             "the share of updates that leave the weight as it was, were it kept in the format.</p>" +
                 updates(results)) +
      "<h2>Tensors, worst first</h2><p class=\"quiet\">Underflow at " +
      power(results.questions.scales[0]) +
      ", and at the recommended scale: the smallest that loses least without overflow.</p>" +
      worst_first(results, order) + "<h2>Every number</h2>";
  for (const auto& [name, statistics] : groups) html += details(results, name, statistics);
  for (const TracedTensor* tensor : order)
    html += details(results, tensor->meaning.place_text(tensor->name), tensor->statistics);
  for (const auto& [what, why] : results.skipped)
    html += "<p>Skipped " + escaped(what) + ": " + escaped(why) + "</p>";
  return html + std::string(page_end);
}

}  // namespace guardbit::tools
