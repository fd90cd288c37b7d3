#include "tools/plot/chart.hpp"

#include <algorithm>
#include <cmath>
#include <span>

#include "formats/support/error.hpp"
#include "formats/support/printable.hpp"
#include "tools/console/terminal.hpp"
#include "tools/plot/panels.hpp"

namespace guardbit::tools {

namespace {

using experiments::Curve;
using experiments::Figure;
using experiments::Look;

constexpr double margin = 10, line_height = 16, tick_room = 20;
constexpr double strip_height = 15, row_height = 26;
constexpr double least_height = 40, panel_gap = 22;

/// With the axes that are asked for, without curves that have no points there.
Figure shown_of(Figure figure, const ChartOptions& options) {
  figure.log_x = options.log_x.value_or(figure.log_x) && figure.categories.empty();
  figure.log_y = options.log_y.value_or(figure.log_y);
  return drawn_part(std::move(figure));
}

std::string title_of(const std::string& name, double x, double y) {
  return (name.empty() ? "" : name + ": ") + number_label(x) + ", " + number_label(y);
}

/// Names with their marks, in columns of one width, `gap` apart.
class Legend {
 public:
  Legend(std::vector<Series> series, double width, double gap = 18)
      : series_(std::move(series)), gap_(gap) {
    std::erase_if(series_, [](const Series& s) { return s.name.empty(); });
    double widest = 0;
    for (const Series& s : series_) widest = std::max(widest, width_of(s.name, label_size));
    column_ = std::min(width, mark + widest + gap);
    const auto most = static_cast<std::size_t>(std::max(1.0, std::floor((width + gap) / column_)));
    rows_ = (series_.size() + most - 1) / most;
    columns_ = rows_ == 0 ? 0 : (series_.size() + rows_ - 1) / rows_;
  }

  double height() const { return rows_ == 0 ? 0 : static_cast<double>(rows_) * 18 + 6; }

  void draw(Drawing& drawing, double middle, double top) const {
    const double left = middle - (column_ * static_cast<double>(columns_) - gap_) / 2;
    for (std::size_t i = 0; i < series_.size(); ++i) {
      const Series& s = series_[i];
      const std::size_t row = i / columns_;
      const double x = left + column_ * static_cast<double>(i % columns_);
      const double y = top + 12 + 18 * static_cast<double>(row);
      if (s.curve->look == Look::bars) {
        drawing.box({x + 6, y - 5, x + 20, y + 5}, s.style.colour);
      } else {
        if (s.curve->look != Look::points)
          drawing.line({x, y}, {x + 26, y}, {s.style.colour, 1.6, s.style.dashes});
        drawing.marker(s.style.shape, {x + 13, y}, s.style.is_open ? 4.5 : 3.6, s.style.colour,
                       s.style.is_open);
      }
      drawing.text({x + mark, y + 4}, shortened(s.name, label_size, column_ - mark), {label_size});
    }
  }

 private:
  static constexpr double mark = 32;

  std::vector<Series> series_;
  double gap_, column_ = 0;
  std::size_t rows_ = 0, columns_ = 0;
};

/// A panel's own legend is as wide as the panel and the gap beside it.
Legend own_legend_of(const Panel& panel, double cell) {
  constexpr double gap = 8;
  return {panel.series, cell + panel_gap - gap, gap};
}

/// The axes of all panels.
struct Axes {
  Axis x, y;
};

Axes axes_of(const Figure& figure, const ChartOptions& options) {
  std::vector<double> xs, ys;
  bool has_bars = false;
  for (const Curve& c : figure.curves) {
    has_bars = has_bars || c.look == Look::bars;
    for (std::size_t i = 0; i < c.x.size(); ++i) {
      // An empty bar has its place, too.
      if (c.look == Look::bars && is_drawable(figure, c.x[i], 1)) xs.push_back(c.x[i]);
      if (!is_drawable(figure, c.x[i], c.y[i])) continue;
      // Up fits what is shown across.
      if (options.x && (c.x[i] < options.x->low || c.x[i] > options.x->high)) continue;
      if (c.look != Look::bars) xs.push_back(c.x[i]);
      ys.push_back(c.y[i]);
    }
  }
  std::optional<Range> x = options.x;
  for (const auto& [asked, is_logarithmic] :
       {std::pair{options.x, figure.log_x}, std::pair{options.y, figure.log_y}})
    if (asked && is_logarithmic && asked->low <= 0)
      throw formats::Error("--range", "a logarithmic axis has no " + number_label(asked->low));
  if (has_bars && !figure.log_y) ys.push_back(0);
  // Bars fill the axis.
  if (has_bars && !x && !xs.empty())
    x = {*std::ranges::min_element(xs), *std::ranges::max_element(xs)};
  return {Axis(xs, figure.log_x, x), Axis(ys, figure.log_y, options.y)};
}

/// The inside of a pair of axes.
class Frame {
 public:
  Frame(Drawing& drawing, const Box& box, const Figure& figure, const Axes& axes)
      : drawing_(drawing), box_(box), figure_(figure), axes_(axes) {}

  double x(double number) const { return box_.left + axes_.x.share(number) * box_.width(); }
  double y(double number) const { return box_.bottom - axes_.y.share(number) * box_.height(); }

  void draw_axes(bool x_labels, bool y_labels, double labels_below) const {
    for (const Tick& tick : axes_.y.ticks(box_.height(), false, tick_size)) {
      const double at = y(tick.at);
      drawing_.line({box_.left, at}, {box_.right, at}, {ink::grid});
      drawing_.line({box_.left - 4, at}, {box_.left, at});
      if (y_labels) drawing_.text({box_.left - 7, at + 4}, tick.label, {tick_size, Anchor::end});
    }
    for (const Tick& tick : axes_.x.ticks(box_.width(), true, tick_size)) {
      const double at = x(tick.at);
      drawing_.line({at, box_.top}, {at, box_.bottom}, {ink::grid});
      drawing_.line({at, box_.bottom}, {at, box_.bottom + 4});
      if (x_labels)
        drawing_.text({at, box_.bottom + labels_below + 16}, tick.label,
                      {tick_size, Anchor::middle});
    }
    for (const double tick : axes_.y.small_ticks(box_.height()))
      drawing_.line({box_.left - 2, y(tick)}, {box_.left, y(tick)});
    for (const double tick : axes_.x.small_ticks(box_.width()))
      drawing_.line({x(tick), box_.bottom}, {x(tick), box_.bottom + 2});
    drawing_.path({{box_.left, box_.top}, {box_.left, box_.bottom}, {box_.right, box_.bottom}}, {});
  }

  void draw_series(const std::vector<Series>& series, bool is_cut) const {
    if (is_cut) drawing_.begin_cut(box_);
    for (std::size_t i = 0; i < series.size(); ++i) {
      const Series& s = series[i];
      if (s.curve->look == Look::bars) draw_bars(s);
      if (s.curve->look == Look::line || s.curve->look == Look::steps)
        draw_line(s, count_alike(s, std::span(series).first(i)));
    }
    if (is_cut) drawing_.end_cut();
    // What is open stands above what is filled.
    for (const bool open : {false, true})
      for (std::size_t i = 0; i < series.size(); ++i)
        if (series[i].style.is_open == open && series[i].curve->look != Look::bars)
          draw_marks(series[i], i, series.size(),
                     count_alike(series[i], std::span(series).subspan(i + 1)));
  }

 private:
  /// How many of the others run where this one does, to the eye, at most of its places.
  std::size_t count_alike(const Series& s, std::span<const Series> others) const {
    const Curve& c = *s.curve;
    const auto is_alike = [&](const Series& other) {
      if (other.curve->x != c.x || other.curve->look != c.look) return false;
      std::size_t drawn = 0, together = 0;
      for (std::size_t i = 0; i < c.x.size(); ++i) {
        if (!is_drawable(figure_, c.x[i], c.y[i])) continue;
        const double beside = other.curve->y[i];
        ++drawn;
        together += is_drawable(figure_, c.x[i], beside) && std::abs(y(c.y[i]) - y(beside)) < 1;
      }
      return 2 * together > drawn;
    };
    return static_cast<std::size_t>(std::ranges::count_if(others, is_alike));
  }

  /// A line that runs along others below it leaves gaps through which they show.
  void draw_line(const Series& s, std::size_t along) const {
    const std::string gaps = along == 0 ? s.style.dashes : "7 " + std::to_string(7 * along);
    const Curve& c = *s.curve;
    std::vector<Place> places;
    const auto end = [&] {
      if (places.size() > 1)
        drawing_.path(places, {s.style.colour, s.style.is_open ? 1.2 : 1.6, gaps});
      places.clear();
    };
    for (std::size_t i = 0; i < c.x.size(); ++i) {
      if (!is_drawable(figure_, c.x[i], c.y[i])) {
        end();  // no line across what cannot be drawn
        continue;
      }
      if (c.look == Look::steps && !places.empty()) places.push_back({x(c.x[i]), places.back().y});
      places.push_back({x(c.x[i]), y(c.y[i])});
    }
    end();
  }

  void draw_bars(const Series& s) const {
    const Curve& c = *s.curve;
    for (std::size_t i = 0; i + 1 < c.x.size(); ++i) {
      if (!is_drawable(figure_, c.x[i], c.y[i]) || c.y[i] == 0) continue;
      const double foot = axes_.y.is_logarithmic() ? box_.bottom : y(std::max(0.0, axes_.y.low()));
      drawing_.box({x(c.x[i]) + 0.4, y(c.y[i]), x(c.x[i + 1]) - 0.4, foot}, s.style.colour,
                   title_of(s.name, c.x[i], c.y[i]));
    }
  }

  /// Marks of long lines would hide each other, so there are some only, at other places for each.
  /// Those of short lines that run together lie within each other.
  void draw_marks(const Series& s, std::size_t index, std::size_t count, std::size_t above) const {
    const Curve& c = *s.curve;
    const double more = 1.3 * static_cast<double>(std::min<std::size_t>(above, 2));
    constexpr std::size_t most_marks = 14;
    std::size_t every = 1, first = 0;
    if (c.look != Look::points && c.x.size() > most_marks) {
      every = (c.x.size() + most_marks - 1) / most_marks;
      first = index * every / count;
    }
    for (std::size_t i = first; i < c.x.size(); i += every) {
      if (!is_drawable(figure_, c.x[i], c.y[i]) || !axes_.x.shows(c.x[i]) || !axes_.y.shows(c.y[i]))
        continue;
      drawing_.marker(s.style.shape, {x(c.x[i]), y(c.y[i])},
                      more + (s.style.is_open          ? 5
                              : c.look == Look::points ? 4
                                                       : 3.2),
                      s.style.colour, s.style.is_open, title_of(s.name, c.x[i], c.y[i]));
    }
  }

  Drawing& drawing_;
  Box box_;
  const Figure& figure_;
  const Axes& axes_;
};

[[noreturn]] void refuse_size() {
  throw formats::Error("--width and --height", "leave no room for this picture");
}

double draw_title(Drawing& drawing, const Box& area, const std::string& title) {
  double y = area.top + margin;
  for (const std::string& line : lines_of(title, title_size, area.width() - 2 * margin)) {
    drawing.text({area.left + margin, y + 12}, line, {title_size});
    y += 19;
  }
  return y;
}

/// What a reader who sees no pictures is told.
std::string words_of(const Figure& figure) {
  const bool has_rows = !figure.categories.empty();
  const std::string at = has_rows ? " of " : " at ";
  const auto x = [&](double number_of_row) {
    return has_rows ? figure.categories.at(static_cast<std::size_t>(number_of_row))
                    : number(number_of_row);
  };
  std::string text =
      figure.title +
      (has_rows ? ". By " + figure.x_label
                : ". Across: " + figure.x_label + (figure.log_x ? ", logarithmic" : "")) +
      (has_rows ? ": " : ". Up: ") + figure.y_label + (figure.log_y ? ", logarithmic." : ".");
  for (const Curve& c : figure.curves) {
    if (c.x.empty()) continue;
    text.append(c.name.empty() ? " From " : " " + c.name + ": from ").append(number(c.y.front()));
    text.append(at).append(x(c.x.front())).append(" to ").append(number(c.y.back()));
    text.append(at).append(x(c.x.back())).append(".");
  }
  return text;
}

/// Where the middle of an axis' words stands: below that of the axis, if they fit there.
double middle_of(const std::string& words, const Box& area, double left, double right) {
  const double half = width_of(words, label_size) / 2 + 2;
  return std::max(area.left + half, std::min((left + right) / 2, area.right - half));
}

std::size_t title_lines(const std::string& title, double width) {
  return lines_of(title, title_size, width - 2 * margin).size();
}

/// Panels of curves: title, panels beside each other with what labels them, words of the axis
/// across, legend.
struct Grid {
  Grid(const Figure& figure, double width, std::size_t strips)
      : panels(panels_of(figure)),
        entries(legend_of(panels)),
        plot_height(panels.size() == 1 ? std::clamp(0.46 * width, 170.0, 290.0) : 165) {
    const std::size_t n = panels.size();
    const std::size_t most = width < 300 ? 1 : width < 480 || n == 2 || n == 4 ? 2 : 3;
    columns = std::min(n, most);
    rows = (n + columns - 1) / columns;
    has_own_legends = entries.size() > most_series;
    x_lines = lines_of(figure.x_label, label_size, width - 2 * margin);
    above = margin + 19 * static_cast<double>(title_lines(figure.title, width)) + 4;
    // Or more: how wide the labels up are is not known yet.
    const double cell = (width - 110) / static_cast<double>(columns) - panel_gap;
    if (has_own_legends) {
      for (const Panel& p : panels)
        own_legend = std::max(own_legend, own_legend_of(p, cell).height());
    } else {
      legend.emplace(entries, width - 2 * margin);
    }
    below = line_height * static_cast<double>(x_lines.size()) +
            (legend && legend->height() > 0 ? legend->height() + 4 : 0) + margin;
    strips_height = strips == 0 ? 0 : strip_height * static_cast<double>(strips) + 4;
    // Each row of panels but for the plots themselves.
    per_row = tick_room + strips_height + own_legend + (n > 1 ? line_height + 2 : 6);
  }

  double height() const {
    return above + below + static_cast<double>(rows) * (per_row + plot_height);
  }

  std::vector<Panel> panels;
  std::vector<Series> entries;
  /// where no height is asked for
  double plot_height;
  std::size_t columns = 1, rows = 1;
  bool has_own_legends = false;
  std::vector<std::string> x_lines;
  std::optional<Legend> legend;
  double above = 0, below = 0, own_legend = 0, strips_height = 0, per_row = 0;
};

void draw_strips(Drawing& drawing, const Box& box, const Frame& frame, const Axis& x,
                 const std::vector<Strip>& strips) {
  std::vector<Curve> named;
  named.reserve(strips.size());
  for (const Strip& strip : strips) named.push_back({strip.name});
  const std::vector<SeriesStyle> styles = styles_of(named);
  const auto within = [&](double number) { return frame.x(std::clamp(number, x.low(), x.high())); };
  for (std::size_t i = 0; i < strips.size(); ++i) {
    const Strip& strip = strips[i];
    const double top = box.bottom + 6 + strip_height * static_cast<double>(i);
    const std::string& colour = styles[i].colour;
    drawing.text({box.left - 7, top + 9}, strip.name, {tick_size, Anchor::end});
    const double least = within(strip.first), normal = within(strip.first_normal);
    const double largest = within(strip.last);
    if (normal > least)
      drawing.box({least, top + 1, normal, top + 9}, colour, strip.name + ": subnormal numbers",
                  0.35);
    if (largest > normal)
      drawing.box({normal, top + 1, largest, top + 9}, colour, strip.name + ": normal numbers");
  }
}

void draw_grid(Drawing& drawing, const Box& area, const Figure& figure, const ChartOptions& options,
               const std::vector<Strip>& strips) {
  const Grid grid(figure, area.width(), strips.size());
  const Axes axes = axes_of(figure, options);
  const bool is_single = grid.panels.size() == 1;
  const double top = draw_title(drawing, area, figure.title) + 4;
  const auto rows = static_cast<double>(grid.rows), columns = static_cast<double>(grid.columns);
  const double row = (area.bottom - grid.below - top) / rows;
  const double plot_height = row - grid.per_row;
  if (plot_height < least_height) refuse_size();
  double widest = 0;
  for (const Tick& tick : axes.y.ticks(plot_height, false, tick_size))
    widest = std::max(widest, width_of(tick.label, tick_size));
  for (const Strip& strip : strips) widest = std::max(widest, width_of(strip.name, tick_size));
  const std::vector<std::string> y_lines =
      lines_of(figure.y_label, label_size, area.bottom - grid.below - top - grid.per_row);
  double y_at = area.left + margin;
  const double head = is_single ? 6 : line_height + 2;
  const double middle_of_axes = top + head + (row * rows - grid.per_row) / 2;
  for (const std::string& line : y_lines) {
    y_at += line_height;
    drawing.text({y_at - 5, middle_of_axes}, line, {label_size, Anchor::middle, ink::text, true});
  }
  const double left = y_at + widest + 12, gap = panel_gap;
  // Half of the last label stands to the right of the axis.
  const double right = area.right - margin - 12;
  const double cell = (right - left - gap * (columns - 1)) / columns;
  if (cell < least_height) refuse_size();
  for (std::size_t i = 0; i < grid.panels.size(); ++i) {
    const Panel& panel = grid.panels[i];
    const std::size_t at_row = i / grid.columns, at_column = i % grid.columns;
    const double cell_left = left + (cell + gap) * static_cast<double>(at_column);
    const double cell_top = top + row * static_cast<double>(at_row) + head;
    const Box box = {cell_left, cell_top, cell_left + cell, cell_top + plot_height};
    if (!is_single)
      drawing.text({box.left, box.top - 7}, shortened(panel.title, label_size, cell), {label_size});
    const Frame frame(drawing, box, figure, axes);
    frame.draw_axes(true, at_column == 0, grid.strips_height);
    frame.draw_series(panel.series, options.x || options.y);
    draw_strips(drawing, box, frame, axes.x, strips);
    // The words of the axis stand between the last row's ticks and its legends.
    const double words =
        at_row + 1 == grid.rows ? line_height * static_cast<double>(grid.x_lines.size()) : 0;
    if (grid.has_own_legends)
      own_legend_of(panel, cell)
          .draw(drawing, (box.left + box.right) / 2,
                box.bottom + grid.strips_height + tick_room + words);
  }
  double y = area.bottom - grid.below - grid.own_legend + line_height - 4;
  for (const std::string& line : grid.x_lines) {
    drawing.text({middle_of(line, area, left, right), y}, line, {label_size, Anchor::middle});
    y += line_height;
  }
  if (grid.legend) grid.legend->draw(drawing, (area.left + area.right) / 2, y - line_height + 8);
}

/// A row of dots for each category, and the numbers beside them where a row has one of each series.
struct Rows {
  Rows(const Figure& figure, double width)
      : panel(panels_of(figure).front()), legend(panel.series, width - 2 * margin) {
    labels = lines_of(figure.y_label, label_size, width - 2 * margin);
    above = margin + 19 * static_cast<double>(title_lines(figure.title, width)) + 8;
    below = tick_room + line_height * static_cast<double>(labels.size()) + legend.height() + margin;
  }
  double height(const Figure& figure) const {
    return above + below + row_height * static_cast<double>(figure.categories.size());
  }

  Panel panel;
  Legend legend;
  std::vector<std::string> labels;
  double above = 0, below = 0;
};

constexpr std::size_t most_value_columns = 3;

/// With four digits, zeros too, so that numbers below each other compare.
std::string value_label(double number) {
  const double size = std::abs(number);
  if (number == std::rint(number) || size < 1e-3 || size >= 1e3) return number_label(number);
  return fixed(number, 3 - static_cast<int>(std::floor(std::log10(size))));
}

bool has_values(const std::vector<Series>& series) {
  return series.size() <= most_value_columns && std::ranges::all_of(series, [](const Series& s) {
           std::vector<double> rows = s.curve->x;
           std::ranges::sort(rows);
           return std::ranges::adjacent_find(rows) == rows.end();
         });
}

void draw_rows(Drawing& drawing, const Box& area, const Figure& figure,
               const ChartOptions& options) {
  const Rows rows(figure, area.width());
  const std::vector<Series>& series = rows.panel.series;
  const double top = draw_title(drawing, area, figure.title) + 8;
  const double bottom = area.bottom - rows.below;
  const double row = (bottom - top) / static_cast<double>(figure.categories.size());
  double widest = 0;
  for (const std::string& name : figure.categories)
    widest = std::max(widest, width_of(name, label_size));
  // Names that take too much of the picture are smaller before they are cut.
  constexpr double least_size = 7;
  const double room = std::min(widest, 0.4 * area.width());
  const double name_size =
      widest == 0 ? label_size : std::max(least_size, label_size * room / widest);
  widest = room;
  std::vector<double> numbers;
  for (const Series& s : series)
    for (const double y : s.curve->y)
      if (is_drawable(figure, 0, y)) numbers.push_back(y);
  const Axis axis(numbers, figure.log_y, options.y);
  constexpr double value_width = 62;
  // Dots need more room than numbers.
  const double all_values = value_width * static_cast<double>(series.size());
  const bool fits = area.width() - widest - all_values > 180;
  const double values = fits && has_values(series) ? all_values : 0;
  const Box box = {area.left + margin + widest + 12, top, area.right - margin - 12 - values,
                   bottom};
  if (box.width() < least_height || row < 14) refuse_size();
  const auto x = [&](double number) { return box.left + axis.share(number) * box.width(); };
  for (const Tick& tick : axis.ticks(box.width(), true, tick_size)) {
    drawing.line({x(tick.at), box.top}, {x(tick.at), box.bottom}, {ink::grid});
    drawing.line({x(tick.at), box.bottom}, {x(tick.at), box.bottom + 4});
    drawing.text({x(tick.at), box.bottom + 16}, tick.label, {tick_size, Anchor::middle});
  }
  for (const double tick : axis.small_ticks(box.width()))
    drawing.line({x(tick), box.bottom}, {x(tick), box.bottom + 2});
  drawing.path({{box.left, box.top}, {box.left, box.bottom}, {box.right, box.bottom}}, {});
  const auto middle = [&](double index) { return box.top + row * (index + 0.5); };
  for (std::size_t i = 0; i < figure.categories.size(); ++i) {
    const double y = middle(static_cast<double>(i));
    drawing.line({box.left, y}, {box.right, y}, {ink::grid});
    drawing.text({box.left - 8, y + name_size / 3},
                 shortened(figure.categories[i], name_size, widest), {name_size, Anchor::end});
  }
  for (const bool open : {false, true}) {
    for (std::size_t s = 0; s < series.size(); ++s) {
      const SeriesStyle& style = series[s].style;
      if (style.is_open != open) continue;
      const Curve& c = *series[s].curve;
      const double value_at = box.right + 12 + value_width * static_cast<double>(s + 1);
      for (std::size_t i = 0; i < c.x.size(); ++i) {
        if (!is_drawable(figure, c.x[i], c.y[i])) continue;
        const std::string title =
            (series[s].name.empty() ? "" : series[s].name + ": ") + number_label(c.y[i]);
        if (axis.shows(c.y[i]))
          drawing.marker(style.shape, {x(c.y[i]), middle(c.x[i])}, open ? 5.5 : 4, style.colour,
                         open, title);
        if (values > 0)
          drawing.text({value_at, middle(c.x[i]) + 4}, value_label(c.y[i]),
                       {tick_size, Anchor::end});
      }
      if (values > 0 && series.size() > 1)
        drawing.marker(style.shape, {value_at - 8, box.top - 6}, open ? 5 : 3.6, style.colour,
                       open);
    }
  }
  double y = bottom + tick_room + 12;
  for (const std::string& line : rows.labels) {
    drawing.text({middle_of(line, area, box.left, box.right), y}, line,
                 {label_size, Anchor::middle});
    y += line_height;
  }
  rows.legend.draw(drawing, (area.left + area.right) / 2, y - 8);
}

}  // namespace

bool is_drawable(const Figure& figure, double x, double y) {
  return std::isfinite(x) && std::isfinite(y) && !(figure.log_x && x <= 0) &&
         !(figure.log_y && y <= 0);
}

Figure drawn_part(Figure figure) {
  std::erase_if(figure.curves, [&](const Curve& c) {
    for (std::size_t i = 0; i < c.x.size(); ++i)
      if (is_drawable(figure, c.x[i], c.y[i])) return false;
    return true;
  });
  return figure;
}

double chart_height(const Figure& figure, double width, std::size_t strips) {
  const Figure shown = shown_of(figure, {});
  return std::ceil(figure.categories.empty() ? Grid(shown, width, strips).height()
                                             : Rows(shown, width).height(shown));
}

void draw_chart(Drawing& drawing, const Box& area, const Figure& figure,
                const ChartOptions& options, const std::vector<Strip>& strips) {
  const Figure shown = shown_of(figure, options);
  if (shown.curves.empty())
    throw formats::Error(formats::in_quotes(figure.title), "has no point that can be drawn");
  if (shown.categories.empty()) {
    draw_grid(drawing, area, shown, options, strips);
  } else {
    draw_rows(drawing, area, shown, options);
  }
}

Drawing chart(const Figure& figure, const ChartOptions& options, const std::vector<Strip>& strips) {
  const double height =
      options.height == 0 ? chart_height(figure, options.width, strips.size()) : options.height;
  Drawing drawing(options.width, height, words_of(shown_of(figure, options)));
  draw_chart(drawing, {0, 0, options.width, height}, figure, options, strips);
  return drawing;
}

}  // namespace guardbit::tools
