#include "tools/plot/heat_map.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "tools/plot/axis.hpp"

namespace guardbit::tools {

namespace {

/// Lighter to darker, so that grey print keeps the order.
std::string shade(double share) {
  constexpr std::array<std::array<double, 3>, 4> stops = {
      {{0xDE, 0xEB, 0xF7}, {0x9E, 0xCA, 0xE1}, {0x31, 0x82, 0xBD}, {0x08, 0x2A, 0x5C}}};
  const double at = std::clamp(share, 0.0, 1.0) * (stops.size() - 1);
  const auto below = std::min<std::size_t>(static_cast<std::size_t>(at), stops.size() - 2);
  const double rest = at - static_cast<double>(below);
  constexpr const char* digits = "0123456789abcdef";
  std::string colour = "#";
  for (std::size_t i = 0; i < 3; ++i) {
    const auto byte = static_cast<unsigned>(std::lround(
        stops.at(below).at(i) + rest * (stops.at(below + 1).at(i) - stops.at(below).at(i))));
    colour += digits[byte >> 4U];
    colour += digits[byte & 15U];
  }
  return colour;
}

constexpr const char *grey = "#c8c8c8", *infinite = "#D55E00", *none = "#ffffff";

}  // namespace

void draw_map(Drawing& drawing, const Box& area, const MapOfTiles& map) {
  std::vector<double> positive;
  bool has_zero = false, has_nan = false, has_infinity = false;
  for (const double x : map.numbers) {
    has_zero = has_zero || x == 0;
    has_nan = has_nan || std::isnan(x);
    has_infinity = has_infinity || std::isinf(x);
    if (std::isfinite(x) && x > 0) positive.push_back(x);
  }
  const auto [least, most] = std::ranges::minmax_element(positive);
  const bool is_logarithmic = !positive.empty() && *most > (map.counts ? 1 : 50) * *least;
  const Axis scale(positive, is_logarithmic,
                   positive.empty() || *least == *most
                       ? std::optional<Range>({0, positive.empty() ? 1 : *most})
                       : std::optional<Range>({is_logarithmic ? *least : 0, *most}));
  const auto colour_of = [&](double x) -> std::string {
    if (std::isnan(x)) return grey;
    if (std::isinf(x)) return infinite;
    return x == 0 ? none : shade(scale.share(x));
  };
  double top = area.top + 10;
  for (const std::string& words : lines_of(map.title, title_size, area.width() - 20)) {
    drawing.text({area.left + 10, top + 12}, words, {title_size});
    top += 19;
  }
  const Axis down({map.first_row, map.last_row}, false, Range{map.first_row, map.last_row});
  const Axis across({map.first_column, map.last_column}, false,
                    Range{map.first_column, map.last_column});
  const double bar = 98, bottom = area.bottom - bar;
  double widest = 0;
  for (const Tick& tick : down.ticks(bottom - top, false, tick_size))
    widest = std::max(widest, width_of(tick.label, tick_size));
  Box box = {area.left + 10 + 16 + widest + 12, top + 8, area.right - 24, bottom};
  const double row_span = map.last_row - map.first_row;
  const double column_span = map.last_column - map.first_column;
  double width = box.width(), height = box.height();
  if (!map.fills) {
    // Tiles are square where that wastes less than half of the room.
    width = std::min(width, 2 * box.height() * column_span / row_span);
    height = std::min(height, 2 * box.width() * row_span / column_span);
  }
  box.right = box.left + width;
  box.bottom = box.top + height;
  const auto x = [&](double column) {
    return box.left + width * std::min(1.0, (column - map.first_column) / column_span);
  };
  const auto y = [&](double row) {
    return box.top + height * std::min(1.0, (row - map.first_row) / row_span);
  };
  const auto place = [](double first, double step, std::size_t i) {
    return first + static_cast<double>(i) * step;
  };
  drawing.begin_tiles();
  for (std::size_t i = 0; i < map.rows; ++i) {
    for (std::size_t j = 0; j < map.columns;) {
      const std::string colour = colour_of(map.numbers[i * map.columns + j]);
      std::size_t end = j + 1;
      while (end < map.columns && colour_of(map.numbers[i * map.columns + end]) == colour) ++end;
      if (colour != none)
        drawing.box({x(place(map.first_column, map.tile_columns, j)),
                     y(place(map.first_row, map.tile_rows, i)),
                     x(place(map.first_column, map.tile_columns, end)),
                     y(place(map.first_row, map.tile_rows, i + 1))},
                    colour);
      j = end;
    }
  }
  drawing.end_tiles();
  drawing.path({{box.left, box.top},
                {box.right, box.top},
                {box.right, box.bottom},
                {box.left, box.bottom},
                {box.left, box.top}},
               {});
  for (const Tick& tick : down.ticks(height, false, tick_size)) {
    drawing.line({box.left - 4, y(tick.at)}, {box.left, y(tick.at)});
    drawing.text({box.left - 7, y(tick.at) + 4}, tick.label, {tick_size, Anchor::end});
  }
  for (const Tick& tick : across.ticks(width, true, tick_size)) {
    drawing.line({x(tick.at), box.bottom}, {x(tick.at), box.bottom + 4});
    drawing.text({x(tick.at), box.bottom + 16}, tick.label, {tick_size, Anchor::middle});
  }
  drawing.text({box.left - widest - 16, (box.top + box.bottom) / 2}, map.y_label,
               {label_size, Anchor::middle, ink::text, true});
  drawing.text({(box.left + box.right) / 2, box.bottom + 32}, map.x_label,
               {label_size, Anchor::middle});
  // What the shades mean.
  double y_bar = box.bottom + 42;
  double left = box.left;
  const auto explain = [&](bool is_there, const std::string& colour, const std::string& words) {
    if (!is_there) return;
    drawing.box({left, y_bar, left + 9, y_bar + 9}, ink::line);
    drawing.box({left + 0.8, y_bar + 0.8, left + 8.2, y_bar + 8.2}, colour);
    drawing.text({left + 14, y_bar + 9}, words, {tick_size});
    left += 14 + width_of(words, tick_size) + 14;
  };
  const std::set<double> different(positive.begin(), positive.end());
  constexpr std::size_t most_single = 8;
  if (map.counts && different.size() <= most_single) {
    for (const double x : different) explain(true, colour_of(x), number_label(x));
    drawing.text({left, y_bar + 9}, map.unit, {tick_size});
    left = box.left;
    y_bar += 20;
  } else if (!positive.empty()) {
    constexpr int steps = 40;
    const double length = std::min(150.0, width * 0.6), step = length / steps;
    drawing.begin_tiles();
    for (int i = 0; i < steps; ++i)
      drawing.box({left + step * i, y_bar, left + step * (i + 1), y_bar + 9},
                  shade((i + 0.5) / steps));
    drawing.end_tiles();
    for (const Tick& tick : scale.ticks(length, true, tick_size))
      drawing.text({left + length * scale.share(tick.at), y_bar + 21}, tick.label,
                   {tick_size, Anchor::middle});
    drawing.text({left + length + 10, y_bar + 9}, map.unit, {tick_size});
    y_bar += 26;
  }
  explain(has_zero, none, "equal");
  explain(has_infinity, infinite, "infinity or NaN");
  explain(has_nan, grey, map.nan_words);
}

}  // namespace guardbit::tools
