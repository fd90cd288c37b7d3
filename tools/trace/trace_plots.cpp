#include "tools/trace/trace_plots.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>

#include "formats/format.hpp"
#include "tools/console/terminal.hpp"
#include "tools/page/page.hpp"

namespace guardbit::tools {

using experiments::StoringOutcome;
using experiments::TraceStatistics;

double percent_of(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}

namespace {

std::string colour(std::size_t i) { return "var(--c" + std::to_string(i % 6) + ")"; }

/// The least of 1, 2, 5, 10, 20 … (from 10^-9 on) of which `range` takes at most `most` steps.
double round_step(double range, int most) {
  double step = 1e-9;
  for (int i = 0; range / step > most; ++i) step *= i % 3 == 1 ? 2.5 : 2;
  return step;
}

struct Range {
  double first, last;
};

/// A drawing of fixed coordinates with axes; x and y are given in the units of the axes.
class Plot {
 public:
  static constexpr double width = 760, left = 62, right = 18, top = 30, drawn = 216;

  /// `below`: room under the axis, for what is drawn there.
  Plot(const std::string& title, Range x, Range y, double below = 0)
      : x_(x), y_(y), height_(top + drawn + below + 54), below_(below) {
    if (x_.last <= x_.first) x_.last = x_.first + 1;
    if (y_.last <= y_.first) y_.last = y_.first + 1;
    out_ << "<svg viewBox=\"0 0 " << width << ' ' << height_ << "\" role=\"img\" aria-label=\""
         << escaped(title) << "\">";
  }

  double x(double value) const {
    return left + (value - x_.first) / (x_.last - x_.first) * (width - left - right);
  }
  double y(double value) const {
    return top + drawn * (1 - (value - y_.first) / (y_.last - y_.first));
  }
  double under_axis() const { return top + drawn + 10; }

  void axes(const std::string& x_label, const std::string& unit) {
    const double y_step = round_step(y_.last - y_.first, 6);
    for (double v = std::ceil(y_.first / y_step) * y_step; v <= y_.last + 1e-9; v += y_step) {
      line(left, y(v), width - right, y(v), "var(--line)");
      text(left - 6, y(v) + 4, number(std::abs(v) < 1e-9 ? 0 : v, "%.3g") + unit, "end");
    }
    const double x_step = std::max(1.0, round_step(x_.last - x_.first, 12));
    for (double v = std::ceil(x_.first / x_step) * x_step; v <= x_.last; v += x_step)
      text(x(v), top + drawn + below_ + 22, number(v, "%.0f"), "middle");
    text((left + width - right) / 2, height_ - 6, x_label, "middle", "var(--quiet)");
  }
  void legend(const std::vector<std::string>& names) {
    double at = left;
    for (std::size_t i = 0; i < names.size(); ++i) {
      out_ << "<rect x=\"" << at << "\" y=\"7\" width=\"10\" height=\"10\" rx=\"2\" fill=\""
           << colour(i) << "\"/>";
      text(at + 15, 17, names[i], "start");
      at += 36 + 12 * static_cast<double>(names[i].size());
    }
  }
  void line(double x1, double y1, double x2, double y2, const std::string& stroke) {
    out_ << "<line x1=\"" << x1 << "\" y1=\"" << y1 << "\" x2=\"" << x2 << "\" y2=\"" << y2
         << "\" stroke=\"" << stroke << "\"/>";
  }
  void text(double at_x, double at_y, const std::string& words, const char* anchor,
            const std::string& fill = "var(--text)") {
    out_ << "<text x=\"" << at_x << "\" y=\"" << at_y << "\" text-anchor=\"" << anchor
         << "\" style=\"fill:" << fill << "\">" << escaped(words) << "</text>";
  }
  void box(double x1, double y1, double x2, double y2, const std::string& fill,
           const std::string& title, double opacity = 1) {
    out_ << "<rect x=\"" << x1 << "\" y=\"" << y1 << "\" width=\"" << std::max(0.5, x2 - x1)
         << "\" height=\"" << std::max(0.0, y2 - y1) << "\" fill=\"" << fill << '"';
    if (opacity < 1) out_ << " opacity=\"" << opacity << '"';
    out_ << "><title>" << escaped(title) << "</title></rect>";
  }
  void curve(const std::vector<std::pair<double, double>>& points, const std::string& stroke,
             bool dashed) {
    out_ << "<polyline fill=\"none\" stroke-width=\"2\" stroke=\"" << stroke << '"'
         << (dashed ? " stroke-dasharray=\"5 4\"" : "") << " points=\"";
    for (const auto& [at, value] : points) out_ << x(at) << ',' << y(value) << ' ';
    out_ << "\"/>";
  }
  void point(double at, double value, const std::string& fill, const std::string& title) {
    out_ << "<circle cx=\"" << x(at) << "\" cy=\"" << y(value) << "\" r=\"3\" fill=\"" << fill
         << "\"><title>" << escaped(title) << "</title></circle>";
  }
  std::string finish() {
    out_ << "</svg>";
    return out_.str();
  }

 private:
  Range x_, y_;
  double height_, below_;
  std::ostringstream out_;
};

/// A line of dots for each name, which stands above its line.
class RowPlot {
 public:
  RowPlot(const std::string& title, Range x, std::size_t rows) : x_(x), rows_(rows) {
    if (x_.last <= x_.first) x_.last = x_.first + 1;
    out_ << "<svg viewBox=\"0 0 " << Plot::width << ' ' << foot() + 48
         << "\" role=\"img\" aria-label=\"" << escaped(title) << "\">";
  }

  void axis(const std::string& label) {
    const double step = std::max(1.0, round_step(x_.last - x_.first, 10));
    for (double v = std::ceil(x_.first / step) * step; v <= x_.last; v += step) {
      out_ << "<line x1=\"" << x(v) << "\" y1=\"0\" x2=\"" << x(v) << "\" y2=\"" << foot()
           << "\" stroke=\"var(--line)\"/>";
      text(x(v), foot() + 20, number(v, "%.0f"), "middle", "var(--text)");
    }
    text(Plot::width / 2, foot() + 42, label, "middle", "var(--quiet)");
  }
  void row(std::size_t at, const std::string& name) {
    // Covers the lines of the axis behind the name.
    out_ << "<rect x=\"0\" y=\"" << y(at) - 27 << "\" width=\"" << 8 + 11 * name.size()
         << "\" height=\"21\" fill=\"var(--back)\"/>";
    text(4, y(at) - 11, name, "start", "var(--text)");
  }
  void dot(std::size_t at, double value, const std::string& title) {
    out_ << "<circle cx=\"" << x(value) << "\" cy=\"" << y(at)
         << "\" r=\"4\" fill=\"var(--bar)\" opacity=\"0.6\"><title>" << escaped(title)
         << "</title></circle>";
  }
  void mark(std::size_t at, double value, const std::string& title) {
    out_ << "<rect x=\"" << x(value) - 2 << "\" y=\"" << y(at) - 7
         << "\" width=\"4\" height=\"14\" rx=\"1\" fill=\"var(--c0)\"><title>" << escaped(title)
         << "</title></rect>";
  }
  std::string finish() {
    out_ << "</svg>";
    return out_.str();
  }

 private:
  static constexpr double row_height = 40, side = 14;

  double x(double value) const {
    return side + (value - x_.first) / (x_.last - x_.first) * (Plot::width - 2 * side);
  }
  static double y(std::size_t row) { return row_height * (static_cast<double>(row) + 0.8); }
  double foot() const { return row_height * static_cast<double>(rows_) + 4; }
  void text(double at_x, double at_y, const std::string& words, const char* anchor,
            const char* fill) {
    out_ << "<text x=\"" << at_x << "\" y=\"" << at_y << "\" text-anchor=\"" << anchor
         << "\" style=\"fill:" << fill << "\">" << escaped(words) << "</text>";
  }

  Range x_;
  std::size_t rows_;
  std::ostringstream out_;
};

std::string at_scale(const std::string& format, int scale) {
  return format + " at scale 2^" + std::to_string(scale);
}

}  // namespace

std::string histogram_plot(const TraceResults& results, const std::string& name,
                           const TraceStatistics& statistics) {
  if (statistics.binades.empty()) return "<p>No finite number other than zero.</p>";
  double most = 0;
  for (const auto& [binade, count] : statistics.binades)
    most = std::max(most, percent_of(count, statistics.nonzero()));
  const int first = statistics.binades.begin()->first;
  const int last = statistics.binades.rbegin()->first + 1;
  const TraceQuestions& questions = results.questions;
  constexpr double row = 19;
  Plot plot("numbers by binade: " + name, {static_cast<double>(first), static_cast<double>(last)},
            {0, most}, row * static_cast<double>(questions.formats.size()) + 8);
  plot.axes("floor(log2 |x|)", "%");
  for (std::size_t f = 0; f < questions.formats.size(); ++f) {
    const experiments::Storing& storing = questions.storings[questions.storing(f, 0)];
    const int scale = storing.scale_exponent;
    const auto within = [&](int exponent) {
      return plot.x(std::clamp(exponent - scale, first, last));
    };
    const double at = plot.under_axis() + row * static_cast<double>(f);
    const double least = within(min_exponent(storing.to) - storing.to.fraction_bits);
    const double normal = within(min_exponent(storing.to));
    const double largest = within(max_exponent(storing.to) + 1);
    const std::string title = at_scale(questions.formats[f], scale);
    plot.text(Plot::left - 6, at + 12, questions.formats[f], "end", colour(f));
    if (least < normal)
      plot.box(least, at + 3, normal, at + 12, colour(f), title + ": subnormal numbers", 0.4);
    if (normal < largest)
      plot.box(normal, at + 3, largest, at + 12, colour(f), title + ": normal numbers");
  }
  for (const auto& [binade, count] : statistics.binades) {
    plot.box(plot.x(binade) + 0.5, plot.y(percent_of(count, statistics.nonzero())),
             plot.x(binade + 1) - 0.5, plot.y(0), "var(--bar)",
             "2^" + std::to_string(binade) + ": " + std::to_string(count) + " numbers");
  }
  return plot.finish();
}

std::string loss_plot(const TraceResults& results, const TraceStatistics& statistics) {
  const TraceQuestions& questions = results.questions;
  double most = 1e-9;
  for (const StoringOutcome& outcome : statistics.outcomes)
    most = std::max({most, percent_of(outcome.underflow, statistics.nonzero()),
                     percent_of(outcome.overflow, statistics.nonzero())});
  Plot plot(
      "underflow and overflow by scale",
      {static_cast<double>(questions.scales.front()), static_cast<double>(questions.scales.back())},
      {0, most});
  plot.axes("log2 of the loss scale; solid: underflow, dashed: overflow", "%");
  plot.legend(questions.formats);
  for (std::size_t f = 0; f < questions.formats.size(); ++f) {
    std::vector<std::pair<double, double>> under, over;
    for (std::size_t s = 0; s < questions.scales.size(); ++s) {
      const StoringOutcome& outcome = statistics.outcomes[questions.storing(f, s)];
      under.emplace_back(questions.scales[s], percent_of(outcome.underflow, statistics.nonzero()));
      over.emplace_back(questions.scales[s], percent_of(outcome.overflow, statistics.nonzero()));
    }
    plot.curve(over, colour(f), true);
    plot.curve(under, colour(f), false);
    for (const auto& [scale, share] : under)
      plot.point(scale, share, colour(f),
                 at_scale(questions.formats[f], static_cast<int>(scale)) + ": " + number(share) +
                     "% underflow");
  }
  return plot.finish();
}

constexpr std::size_t most_dots = 200;

std::string sqnr_plot(const TraceResults& results, const experiments::RecipeStatistics& total) {
  const std::vector<experiments::Recipe>& recipes = results.questions.recipes;
  const auto sqnr_of = [](const experiments::RecipeStatistics& s,
                          std::size_t r) -> std::optional<double> {
    return s.outcomes[r] ? experiments::sqnr_db(s.signal, *s.outcomes[r]) : std::nullopt;
  };
  Range range = {0, 0};
  for (const TracedTensor& tensor : results.tensors) {
    for (std::size_t r = 0; r < recipes.size(); ++r) {
      const double sqnr = sqnr_of(tensor.statistics.recipes, r).value_or(0);
      range = {std::min(range.first, std::floor(sqnr)), std::max(range.last, std::ceil(sqnr))};
    }
  }
  RowPlot plot("signal to quantisation noise by format", range, recipes.size());
  plot.axis("SQNR in decibels");
  const std::size_t step = 1 + results.tensors.size() / most_dots;
  for (std::size_t r = 0; r < recipes.size(); ++r) {
    plot.row(r, recipes[r].name);
    for (std::size_t i = 0; i < results.tensors.size(); i += step) {
      const TracedTensor& tensor = results.tensors[i];
      if (const auto sqnr = sqnr_of(tensor.statistics.recipes, r))
        plot.dot(r, *sqnr, tensor.name + ", " + recipes[r].name + ": " + number(*sqnr) + " dB");
    }
    if (const auto sqnr = sqnr_of(total, r))
      plot.mark(r, *sqnr, "all, " + recipes[r].name + ": " + number(*sqnr) + " dB");
  }
  return plot.finish();
}

std::string trend_plot(const TraceResults& results) {
  std::vector<std::string> names;
  std::vector<std::vector<std::pair<double, double>>> curves;
  Range x = {std::numeric_limits<double>::infinity(), 0};
  Range y = {x.first, -x.first};
  for (const auto& [role, steps] : by_role_and_step(results)) {
    std::vector<std::pair<double, double>> points;
    for (const auto& [step, s] : steps) {
      if (s.amax && *s.amax > 0) points.emplace_back(static_cast<double>(step), std::log2(*s.amax));
    }
    if (points.size() < 2) continue;
    for (const auto& [step, value] : points) {
      x = {std::min(x.first, step), std::max(x.last, step)};
      y = {std::min(y.first, std::floor(value)), std::max(y.last, std::ceil(value))};
    }
    names.push_back(role.empty() ? "other" : role);
    curves.push_back(std::move(points));
  }
  if (curves.empty()) return {};
  Plot plot("largest magnitude by step", x, y);
  plot.axes("step; log2 of the largest magnitude", "");
  plot.legend(names);
  for (std::size_t i = 0; i < curves.size(); ++i) {
    plot.curve(curves[i], colour(i), false);
    for (const auto& [step, value] : curves[i])
      plot.point(step, value, colour(i),
                 names[i] + ", step " + number(step, "%.0f") + ": 2^" + number(value));
  }
  return plot.finish();
}

}  // namespace guardbit::tools
