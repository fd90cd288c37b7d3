#include "tools/trace/trace_plots.hpp"

#include "formats/format.hpp"
#include "formats/support/error.hpp"
#include "tools/report/page_parts.hpp"

namespace guardbit::tools {

using experiments::StoringOutcome;
using experiments::TraceStatistics;

double percent_of(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}

namespace {

using experiments::Curve;
using experiments::Figure;
using experiments::Look;

/// What each format holds at the first scale, in the units of the numbers.
std::vector<Strip> strips_of(const TraceQuestions& questions) {
  std::vector<Strip> strips;
  for (std::size_t f = 0; f < questions.formats.size(); ++f) {
    const experiments::Storing& storing = questions.storings[questions.storing(f, 0)];
    const int scale = storing.scale_exponent;
    const auto at = [&](int exponent) { return static_cast<double>(exponent - scale); };
    strips.push_back({questions.formats[f], at(min_exponent(storing.to) - storing.to.fraction_bits),
                      at(min_exponent(storing.to)), at(max_exponent(storing.to) + 1)});
  }
  return strips;
}

Figure histogram_of(const std::string& name, const TraceStatistics& statistics) {
  Figure figure{"numbers by binade" + (name.empty() ? "" : ": " + name), "floor(log2 |x|)",
                "share of the numbers other than zero (%)"};
  Curve curve{"", {}, {}, Look::bars};
  const int first = statistics.binades.begin()->first;
  const int last = statistics.binades.rbegin()->first;
  for (int binade = first; binade <= last; ++binade) {
    const auto found = statistics.binades.find(binade);
    curve.add(binade, found == statistics.binades.end()
                          ? 0
                          : percent_of(found->second, statistics.nonzero()));
  }
  curve.add(last + 1, 0);
  figure.curves.push_back(curve);
  return figure;
}

Figure losses_of(const TraceResults& results, const TraceStatistics& statistics) {
  const TraceQuestions& questions = results.questions;
  Figure figure{"underflow and overflow by scale", "log2 of the loss scale",
                "share of the numbers other than zero (%)"};
  for (std::size_t f = 0; f < questions.formats.size(); ++f) {
    Curve under{questions.formats[f] + ", underflow"}, over{questions.formats[f] + ", overflow"};
    for (std::size_t s = 0; s < questions.scales.size(); ++s) {
      const StoringOutcome& outcome = statistics.outcomes[questions.storing(f, s)];
      under.add(questions.scales[s], percent_of(outcome.underflow, statistics.nonzero()));
      over.add(questions.scales[s], percent_of(outcome.overflow, statistics.nonzero()));
    }
    figure.curves.push_back(under);
    figure.curves.push_back(over);
  }
  return figure;
}

Figure sqnr_figure(const std::vector<experiments::Recipe>& recipes,
                   const std::vector<const experiments::RecipeStatistics*>& tensors,
                   const experiments::RecipeStatistics& total) {
  Figure figure{"signal to quantisation noise by recipe", "recipe", "SQNR (dB)"};
  Curve each{"a tensor", {}, {}, Look::points}, all{"all", {}, {}, Look::points};
  const auto add = [](Curve& curve, const experiments::RecipeStatistics& s, std::size_t r) {
    const auto sqnr = s.outcomes[r] ? experiments::sqnr_db(s.signal, *s.outcomes[r]) : std::nullopt;
    if (sqnr) curve.add(static_cast<double>(r), *sqnr);
  };
  constexpr std::size_t most_dots = 200;
  const std::size_t step = 1 + tensors.size() / most_dots;
  for (std::size_t r = 0; r < recipes.size(); ++r) {
    figure.categories.push_back(recipes[r].name);
    for (std::size_t i = 0; i < tensors.size(); i += step) add(each, *tensors[i], r);
    add(all, total, r);
  }
  figure.curves = {each, all};
  return figure;
}

/// Of results of recipe compare.
experiments::RecipeStatistics statistics_of(const experiments::StoredTensor& tensor) {
  return {tensor.signal, {tensor.outcomes.begin(), tensor.outcomes.end()}};
}

}  // namespace

Figure sqnr_figure(const RecipeResults& results) {
  std::vector<experiments::RecipeStatistics> tensors;
  tensors.reserve(results.tensors.size());
  for (const ComparedTensor& tensor : results.tensors)
    tensors.push_back(statistics_of(tensor.compared));
  std::vector<const experiments::RecipeStatistics*> pointers;
  pointers.reserve(tensors.size());
  for (const experiments::RecipeStatistics& s : tensors) pointers.push_back(&s);
  return sqnr_figure(results.recipes, pointers, statistics_of(results.total()));
}

std::string histogram_plot(const TraceResults& results, const std::string& name,
                           const TraceStatistics& statistics) {
  if (statistics.binades.empty()) return "<p>No finite number other than zero.</p>";
  return drawing_of(histogram_of(name, statistics), strips_of(results.questions));
}

std::string loss_plot(const TraceResults& results, const TraceStatistics& statistics) {
  return drawing_of(losses_of(results, statistics));
}

std::string sqnr_plot(const TraceResults& results, const experiments::RecipeStatistics& total) {
  std::vector<const experiments::RecipeStatistics*> tensors;
  for (const TracedTensor& tensor : results.tensors) tensors.push_back(&tensor.statistics.recipes);
  const Figure figure = sqnr_figure(results.questions.recipes, tensors, total);
  return drawn_part(figure).curves.empty() ? "" : drawing_of(figure);
}

std::string trend_plot(const TraceResults& results) {
  Figure figure{"largest magnitude by step", "step", "largest magnitude", false, true};
  for (const auto& [role, steps] : by_role_and_step(results)) {
    Curve curve{role.empty() ? "other" : role};
    for (const auto& [step, s] : steps)
      if (s.amax && *s.amax > 0) curve.add(static_cast<double>(step), *s.amax);
    if (curve.x.size() >= 2) figure.curves.push_back(curve);
  }
  return figure.curves.empty() ? "" : drawing_of(figure);
}

Drawing trace_picture(const TraceResults& results, const ChartOptions& options) {
  const TraceStatistics total = total_of(results);
  if (total.binades.empty())
    throw formats::Error("--plot", "the trace has no finite number other than zero");
  const Figure histogram = histogram_of("", total);
  const std::vector<Strip> strips = strips_of(results.questions);
  const bool has_losses = !results.questions.scales.empty() && !results.questions.formats.empty();
  const Figure losses = has_losses ? losses_of(results, total) : Figure{};
  const double upper = chart_height(histogram, options.width, strips.size());
  const double lower = has_losses ? chart_height(losses, options.width) : 0;
  const double height = options.height == 0 ? upper + lower : options.height;
  const double border = height * upper / (upper + lower);
  Drawing drawing(options.width, height, histogram.title);
  draw_chart(drawing, {0, 0, options.width, border}, histogram, {}, strips);
  if (has_losses) draw_chart(drawing, {0, border, options.width, height}, losses, options);
  return drawing;
}

}  // namespace guardbit::tools
