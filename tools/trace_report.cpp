#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <set>
#include <sstream>

#include "formats/format.hpp"
#include "tools/trace_results.hpp"

namespace guardbit::tools {

using experiments::StoringOutcome;
using experiments::TraceStatistics;

namespace {

constexpr const char* style = R"(
:root{--back:#fff;--text:#1b1f24;--quiet:#667;--line:#d4d8de;--c0:#0b62c4;--c1:#c2410c;--c2:#15803d;--c3:#9333ea;--c4:#b8860b;--c5:#be185d;--hot:200,40,20}
@media(prefers-color-scheme:dark){:root{--back:#14171b;--text:#e6e9ee;--quiet:#9aa3ae;--line:#343a42;--c0:#6cb0ff;--c1:#ff9b6a;--c2:#5fd38d;--c3:#c99bff;--c4:#e6c35c;--c5:#ff8dbd;--hot:255,110,80}}
*{box-sizing:border-box}body{margin:0 auto;padding:1.5rem;max-width:75rem;background:var(--back);color:var(--text);font:15px/1.5 system-ui,sans-serif}
h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2rem}p{max-width:48rem}.quiet{color:var(--quiet)}
svg{width:100%;height:auto;max-width:56rem;display:block}svg text{fill:var(--text);font:12px system-ui,sans-serif}
.scroll{overflow-x:auto}table{border-collapse:collapse;font-variant-numeric:tabular-nums}th,td{padding:.2rem .6rem;text-align:right;border-bottom:1px solid var(--line);white-space:nowrap}
th:first-child,td:first-child{text-align:left}th{position:sticky;top:0;background:var(--back)}summary{cursor:pointer}
@media print{:root{--back:#fff;--text:#000;--line:#999}body{max-width:none;padding:0}details,svg,tr{break-inside:avoid}.scroll{overflow:visible}}
)";

std::string escaped(const std::string& text) {
  std::string safe;
  for (const char c : text) {
    switch (c) {
      case '&': safe += "&amp;"; break;
      case '<': safe += "&lt;"; break;
      case '>': safe += "&gt;"; break;
      case '"': safe += "&quot;"; break;
      default: safe += c;
    }
  }
  return safe;
}

std::string number(double value, const char* form = "%.4g") {
  std::array<char, 48> text{};
  std::snprintf(text.data(), text.size(), form, value);
  return text.data();
}

double percent(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}

std::string power(int exponent) { return "2<sup>" + std::to_string(exponent) + "</sup>"; }

std::string colour(std::size_t i) { return "var(--c" + std::to_string(i % 6) + ")"; }

/// A drawing of fixed coordinates with axes; x and y are given in the units of the axes.
class Plot {
 public:
  static constexpr double width = 760, height = 300, left = 56, right = 12, top = 26, bottom = 58;

  Plot(const std::string& title, double x_first, double x_last, double y_last)
      : x_first_(x_first), x_last_(std::max(x_last, x_first + 1)), y_last_(y_last) {
    out_ << "<svg viewBox=\"0 0 " << width << ' ' << height << "\" role=\"img\" aria-label=\""
         << escaped(title) << "\">";
  }

  double x(double value) const {
    return left + (value - x_first_) / (x_last_ - x_first_) * (width - left - right);
  }
  double y(double value) const {
    return height - bottom - value / y_last_ * (height - top - bottom);
  }

  void axes(const std::string& x_label, const std::string& unit) {
    for (int i = 0; i <= 4; ++i) {
      const double value = y_last_ * i / 4;
      line(left, y(value), width - right, y(value), "var(--line)");
      text(left - 6, y(value) + 4, number(value, "%.3g") + unit, "end");
    }
    const double step = std::max(1.0, std::ceil((x_last_ - x_first_) / 12));
    for (double value = x_first_; value <= x_last_; value += step)
      text(x(value), height - bottom + 34, number(value, "%.0f"), "middle");
    text((left + width - right) / 2, height - 6, x_label, "middle");
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
           const std::string& title) {
    out_ << "<rect x=\"" << x1 << "\" y=\"" << y1 << "\" width=\"" << std::max(0.5, x2 - x1)
         << "\" height=\"" << std::max(0.0, y2 - y1) << "\" fill=\"" << fill << "\"><title>"
         << escaped(title) << "</title></rect>";
  }
  void curve(const std::vector<std::pair<double, double>>& points, const std::string& stroke,
             bool dashed) {
    out_ << "<polyline fill=\"none\" stroke-width=\"2\" stroke=\"" << stroke << '"'
         << (dashed ? " stroke-dasharray=\"5 4\"" : "") << " points=\"";
    for (const auto& [at, value] : points) out_ << x(at) << ',' << y(value) << ' ';
    out_ << "\"/>";
  }
  std::string finish() {
    out_ << "</svg>";
    return out_.str();
  }

 private:
  double x_first_, x_last_, y_last_;
  std::ostringstream out_;
};

/// Shares of the numbers by binade; below, what each format holds at the first scale.
std::string histogram(const TraceResults& results, const TraceStatistics& total) {
  if (total.binades.empty()) return "<p>No finite number other than zero.</p>";
  double most = 0;
  for (const auto& [binade, count] : total.binades)
    most = std::max(most, percent(count, total.nonzero()));
  const int first = total.binades.begin()->first;
  const int last = total.binades.rbegin()->first + 1;
  Plot plot("numbers by binade", first, last, most);
  const TraceQuestions& questions = results.questions;
  for (std::size_t f = 0; f < questions.formats.size(); ++f) {
    const experiments::Storing& storing = questions.storings[questions.storing(f, 0)];
    const int scale = storing.scale_exponent;
    const double low = std::max(first, min_exponent(storing.to) - storing.to.fraction_bits - scale);
    const double high = std::min(last, max_exponent(storing.to) + 1 - scale);
    const double at = Plot::height - Plot::bottom + 1 + 4 * static_cast<double>(f % 4);
    if (low < high) {
      plot.box(plot.x(low), at - 4, plot.x(high), at - 1, colour(f),
               questions.formats[f] + " at scale 2^" + std::to_string(scale));
    }
    plot.text(Plot::left + 80 * static_cast<double>(f), 14, questions.formats[f], "start",
              colour(f));
  }
  plot.axes("floor(log2 |x|); coloured bars: what each format holds at the first scale", "%");
  for (const auto& [binade, count] : total.binades) {
    plot.box(plot.x(binade) + 0.5, plot.y(percent(count, total.nonzero())),
             plot.x(binade + 1) - 0.5, plot.y(0) - 4, "var(--c0)",
             "2^" + std::to_string(binade) + ": " + std::to_string(count) + " numbers");
  }
  return plot.finish();
}

std::string loss_curves(const TraceResults& results, const TraceStatistics& total) {
  const TraceQuestions& questions = results.questions;
  double most = 1e-9;
  for (const StoringOutcome& outcome : total.outcomes)
    most = std::max({most, percent(outcome.underflow, total.nonzero()),
                     percent(outcome.overflow, total.nonzero())});
  Plot plot("underflow and overflow by scale", questions.scales.front(), questions.scales.back(),
            most);
  plot.axes("log2 of the loss scale; solid: underflow, dashed: overflow", "%");
  for (std::size_t f = 0; f < questions.formats.size(); ++f) {
    std::vector<std::pair<double, double>> under, over;
    for (std::size_t s = 0; s < questions.scales.size(); ++s) {
      const StoringOutcome& outcome = total.outcomes[questions.storing(f, s)];
      under.emplace_back(questions.scales[s], percent(outcome.underflow, total.nonzero()));
      over.emplace_back(questions.scales[s], percent(outcome.overflow, total.nonzero()));
    }
    plot.curve(under, colour(f), false);
    plot.curve(over, colour(f), true);
    plot.text(Plot::left + 80 * static_cast<double>(f), 14, questions.formats[f], "start",
              colour(f));
  }
  return plot.finish();
}

/// Tensors by steps, coloured by the underflow of the first format at the first scale.
std::string heat_map(const TraceResults& results) {
  std::set<std::uint64_t> steps;
  std::map<std::string, std::map<std::uint64_t, double>> rows;
  for (const TracedTensor& tensor : results.tensors) {
    if (!tensor.meaning.step) continue;
    steps.insert(*tensor.meaning.step);
    rows[tensor.meaning.tensor + " " + tensor.meaning.role][*tensor.meaning.step] =
        percent(tensor.statistics.outcomes[0].underflow, tensor.statistics.nonzero());
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
      html += at == values.end()
                  ? "<td></td>"
                  : "<td style=\"background:rgba(var(--hot)," + number(at->second / 125, "%.2f") +
                        ")\">" + number(at->second, "%.2f") + "%</td>";
    }
    html += "</tr>";
  }
  return html + "</table></div>";
}

std::string or_dash(const std::optional<double>& value) {
  return value ? number(*value, "%.6g") : "–";
}

/// Everything about a tensor or a group of them, folded.
std::string details(const TraceResults& results, const std::string& name,
                    const TraceStatistics& s) {
  const TraceQuestions& questions = results.questions;
  std::string html = "<details><summary>" + escaped(name) + "</summary><p>sum of magnitudes " +
                     number(s.sum.nearest(), "%.17g") + ", of squares " +
                     number(s.squares.nearest(), "%.17g") +
                     "</p><div class=\"scroll\"><table><tr><th>format</th><th>scale</th>"
                     "<th>underflow</th><th>subnormal</th><th>overflow</th><th>mass lost</th></tr>";
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
  html += "</table></div><div class=\"scroll\"><table><tr><th>binade</th><th>numbers</th></tr>";
  for (const auto& [binade, count] : s.binades)
    html += "<tr><td>" + power(binade) + "</td><td>" + std::to_string(count) + "</td></tr>";
  return html + "</table></div></details>";
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
      html += window.first ? "<td>" + power(*window.first) + " to " + power(*window.last) + "</td>"
                           : "<td>none</td>";
    }
    const auto format = recommended_format(results, s);
    html += "<td>" + (format ? escaped(results.questions.formats[*format]) : "none") + "</td></tr>";
  }
  return html + "</table></div>";
}

/// A row per tensor, those first that lose most in the first format at the first scale.
std::string worst_first(const TraceResults& results,
                        const std::vector<const TracedTensor*>& order) {
  std::string html =
      "<div class=\"scroll\"><table><tr><th>tensor</th><th>elements</th>"
      "<th>zeros</th><th>infs</th><th>NaNs</th><th>smallest</th><th>largest</th>";
  for (const std::string& format : results.questions.formats)
    html += "<th>" + escaped(format) + " underflow</th>";
  html += "</tr>";
  for (const TracedTensor* tensor : order) {
    const TraceStatistics& s = tensor->statistics;
    html += "<tr><td>" + escaped(tensor->name) + "</td><td>" + std::to_string(s.elements) +
            "</td><td>" + number(percent(s.zeros, s.elements)) + "%</td><td>" +
            std::to_string(s.infinities) + "</td><td>" + std::to_string(s.nans) + "</td><td>" +
            or_dash(s.amin_nonzero) + "</td><td>" + or_dash(s.amax) + "</td>";
    for (std::size_t f = 0; f < results.questions.formats.size(); ++f) {
      html += "<td>" +
              number(percent(s.outcomes[results.questions.storing(f, 0)].underflow, s.nonzero())) +
              "%</td>";
    }
    html += "</tr>";
  }
  return html + "</table></div>";
}

}  // namespace

std::string trace_report(const TraceResults& results) {
  const TraceStatistics total = total_of(results);
  std::vector<std::pair<std::string, TraceStatistics>> groups;
  for (const auto& [role, statistics] : by_role(results)) groups.emplace_back(role, statistics);
  groups.emplace_back("all", total);
  std::vector<const TracedTensor*> order;
  for (const TracedTensor& tensor : results.tensors) order.push_back(&tensor);
  const auto loss = [](const TracedTensor* tensor) {
    return percent(tensor->statistics.outcomes[0].underflow, tensor->statistics.nonzero());
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](const TracedTensor* a, const TracedTensor* b) { return loss(a) > loss(b); });

  std::string html =
      "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
      "content=\"width=device-width,initial-scale=1\"><meta name=\"color-scheme\" content=\"light "
      "dark\"><title>Gradient trace</title><style>" +
      std::string(style) + "</style></head><body><h1>Gradient trace</h1><p>" +
      std::to_string(results.tensors.size()) + " tensors, " + std::to_string(total.elements) +
      " elements, " + number(percent(total.zeros, total.elements)) + "% zeros, " +
      std::to_string(total.infinities) + " infinities, " + std::to_string(total.nans) +
      " NaNs. Policy " + escaped(results.policy) + ", product with the scale " +
      (results.exact_product ? "exact" : "rounded to FP32") + ".</p>";
  if (const TracedTensor* first = first_nonfinite(results)) {
    html += "<p><strong>First " + std::string(first->first_is_nan ? "NaN" : "infinity") +
            "</strong>: " + escaped(first->name) + ", index " +
            std::to_string(*first->first_nonfinite) + ".</p>";
  }
  html += "<h2>Numbers by binade</h2>" + histogram(results, total) + "<h2>Loss by scale</h2>" +
          loss_curves(results, total) +
          "<h2>Safe scales</h2><p class=\"quiet\">Nothing overflows and at most " +
          number(100 * results.tolerance) + "% of the numbers other than zero underflow.</p>" +
          windows(results, groups) + heat_map(results) +
          "<h2>Tensors, worst first</h2><p class=\"quiet\">Underflow at " +
          power(results.questions.scales[0]) + ".</p>" + worst_first(results, order) +
          "<h2>Every number</h2>";
  for (const auto& [name, statistics] : groups) html += details(results, name, statistics);
  for (const TracedTensor* tensor : order)
    html += details(results, tensor->name, tensor->statistics);
  for (const auto& [what, why] : results.skipped)
    html += "<p>Skipped " + escaped(what) + ": " + escaped(why) + "</p>";
  return html + "</body></html>\n";
}

}  // namespace guardbit::tools
