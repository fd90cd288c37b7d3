#include "tools/plot/text_plot.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>
#include <vector>

#include "tools/console/terminal.hpp"
#include "tools/plot/chart.hpp"

namespace guardbit::tools {

namespace {

using experiments::Curve;
using experiments::Figure;

struct TextAxis {
  bool logarithmic = false;
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();

  double place(double x) const { return logarithmic ? std::log10(x) : x; }
  void include(double x) {
    low = std::min(low, place(x));
    high = std::max(high, place(x));
  }
  void widen() {
    if (high > low) return;
    const double margin = low == 0 ? 1 : std::abs(low) / 2;
    low -= margin;
    high += margin;
  }
  /// 0 to steps - 1.
  int step(double x, int steps) const {
    return static_cast<int>(std::lround((place(x) - low) / (high - low) * (steps - 1)));
  }
  std::string label(double share) const {
    const double x = low + share * (high - low);
    return label_of(logarithmic ? std::pow(10, x) : x);
  }
  static std::string label_of(double x) {
    const bool is_plain = x == 0 || (std::abs(x) >= 1e-3 && std::abs(x) < 1e6);
    return is_plain ? number_label(x) : number(x, "%.3g");
  }
};

const std::string marks = "*o+x#@%&";

std::string legend_of(const Figure& figure, int margin) {
  std::string text;
  for (std::size_t i = 0; i < figure.curves.size(); ++i)
    text.append(static_cast<std::size_t>(margin), ' ')
        .append({marks[i % marks.size()], ' ', ' '})
        .append(figure.curves[i].name + '\n');
  return text;
}

/// A line for each category.
std::string text_rows(const Figure& figure, int width) {
  TextAxis axis{figure.log_y};
  std::size_t widest = 0;
  for (const Curve& c : figure.curves)
    for (std::size_t i = 0; i < c.x.size(); ++i)
      if (is_drawable(figure, c.x[i], c.y[i])) axis.include(c.y[i]);
  axis.widen();
  for (const std::string& name : figure.categories) widest = std::max(widest, display_width(name));
  const int columns = std::max(20, width - static_cast<int>(widest) - 3);
  std::string text = figure.title + '\n';
  for (std::size_t row = 0; row < figure.categories.size(); ++row) {
    std::string line(static_cast<std::size_t>(columns), ' ');
    for (std::size_t i = 0; i < figure.curves.size(); ++i) {
      const Curve& c = figure.curves[i];
      for (std::size_t k = 0; k < c.x.size(); ++k)
        if (c.x[k] == static_cast<double>(row) && is_drawable(figure, c.x[k], c.y[k]))
          line[static_cast<std::size_t>(axis.step(c.y[k], columns))] = marks[i % marks.size()];
    }
    const std::string& name = figure.categories[row];
    line.erase(line.find_last_not_of(' ') + 1);
    text.append(widest - display_width(name), ' ').append(name);
    text.append(line.empty() ? " |" : " | ").append(line) += '\n';
  }
  const std::string left = axis.label(0), right = axis.label(1), indent(widest + 1, ' ');
  const int gap = std::max(1, columns - static_cast<int>(left.size() + right.size()));
  return text + indent + '+' + std::string(static_cast<std::size_t>(columns) + 1, '-') + '\n' +
         indent + "  " + left + std::string(static_cast<std::size_t>(gap), ' ') + right + '\n' +
         indent + "  " + figure.y_label + (figure.log_y ? ", logarithmic" : "") + '\n' +
         legend_of(figure, static_cast<int>(widest) + 3);
}

}  // namespace

std::string text_plot(const Figure& whole, int width, int height) {
  const Figure figure = drawn_part(whole);
  if (figure.curves.empty()) return {};
  if (!figure.categories.empty()) return text_rows(figure, width);
  TextAxis x{figure.log_x}, y{figure.log_y};
  const auto each = [&](const Curve& c, const auto& visit) {
    for (std::size_t k = 0; k < c.x.size(); ++k)
      if (is_drawable(figure, c.x[k], c.y[k])) visit(c.x[k], c.y[k]);
  };
  for (const Curve& c : figure.curves) {
    each(c, [&](double a, double b) {
      x.include(a);
      y.include(b);
    });
  }
  x.widen();
  y.widen();
  constexpr int margin = 11;
  const int columns = width - margin;
  std::vector<std::string> rows(static_cast<std::size_t>(height),
                                std::string(static_cast<std::size_t>(columns), ' '));
  for (std::size_t i = 0; i < figure.curves.size(); ++i) {
    each(figure.curves[i], [&](double a, double b) {
      const auto row = static_cast<std::size_t>(height - 1 - y.step(b, height));
      rows[row][static_cast<std::size_t>(x.step(a, columns))] = marks[i % marks.size()];
    });
  }
  std::ostringstream s;
  s << figure.title << '\n' << figure.y_label << '\n';
  for (int r = 0; r < height; ++r) {
    const bool labelled = r == 0 || r == height - 1 || r == height / 2;
    std::string label =
        labelled ? y.label(1 - static_cast<double>(r) / (height - 1)) : std::string();
    label.insert(
        0, static_cast<std::size_t>(std::max(0, margin - 2 - static_cast<int>(label.size()))), ' ');
    std::string line = label + (labelled ? " +" : " |") + rows[static_cast<std::size_t>(r)];
    line.erase(line.find_last_not_of(' ') + 1);
    s << line << '\n';
  }
  s << std::string(margin - 1, ' ') << '+' << std::string(static_cast<std::size_t>(columns), '-')
    << '\n';
  const std::string left = x.label(0), right = x.label(1);
  const int gap = columns - static_cast<int>(left.size() + right.size());
  s << std::string(margin, ' ') << left
    << std::string(static_cast<std::size_t>(std::max(1, gap)), ' ') << right << '\n'
    << std::string(margin, ' ') << figure.x_label << (figure.log_x ? ", logarithmic" : "") << '\n';
  s << legend_of(figure, margin);
  return s.str();
}

}  // namespace guardbit::tools
