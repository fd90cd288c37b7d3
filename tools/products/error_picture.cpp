#include "tools/products/error_picture.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "tools/console/terminal.hpp"
#include "tools/plot/heat_map.hpp"

namespace guardbit::tools {

namespace {

using experiments::Curve;
using experiments::Figure;
using experiments::Look;

MapOfTiles tiles_of(const ErrorReport& report) {
  constexpr std::int64_t most_tiles = 128;
  const experiments::HeatMap tiles = error_map(report, most_tiles, most_tiles);
  MapOfTiles map;
  map.title = "largest error";
  if (tiles.tile_rows > 1 || tiles.tile_columns > 1)
    map.title += " of each " + std::to_string(tiles.tile_rows) + " x " +
                 std::to_string(tiles.tile_columns) + " tile";
  if (report.d.batch > 1) map.title += ", batch entry " + std::to_string(mapped_batch(report));
  map.x_label = "column";
  map.y_label = "row";
  map.unit = report.sums.empty() ? "ulp" : "of |A||B|";
  map.rows = static_cast<std::size_t>(tiles.rows);
  map.columns = static_cast<std::size_t>(tiles.columns);
  map.tile_rows = static_cast<double>(tiles.tile_rows);
  map.tile_columns = static_cast<double>(tiles.tile_columns);
  map.last_row = static_cast<double>(report.d.rows);
  map.last_column = static_cast<double>(report.d.columns);
  map.numbers = tiles.largest;
  return map;
}

/// Signed distances in steps of one width where they are small, magnitudes by powers of two where
/// they are not.
Figure histogram_of(const ErrorReport& report) {
  Figure figure{"distances", "D - reference (ulp)", "share of the elements (%)"};
  double largest = 0, least = INFINITY;
  std::size_t equal = 0, compared = 0;
  bool is_whole = true;
  for (std::size_t i = 0; i < report.deviations.size(); ++i) {
    const experiments::Deviation x = report.deviations[i];
    if (!std::isfinite(x.ulps)) continue;
    ++compared;
    if (x.ulps == 0) {
      ++equal;
    } else {
      least = std::min(least, std::abs(x.ulps));
    }
    largest = std::max(largest, std::abs(x.ulps));
    is_whole = is_whole && x.ulps == std::rint(x.ulps);
  }
  constexpr double most_linear = 16;
  const bool is_linear = largest <= most_linear;
  // Parts of a power of two where there are few powers.
  const double parts = largest > 16 * least ? 1 : 4;
  double step = 1;
  while (!is_whole && step > 1.0 / 1024 && largest / step < most_linear) step /= 2;
  const auto bin_of = [&](double ulps) {
    if (!is_linear) return std::floor(parts * std::log2(std::abs(ulps)));
    return std::floor(ulps / step + 0.5);
  };
  std::map<double, std::size_t> bins;
  for (std::size_t i = 0; i < report.deviations.size(); ++i) {
    const double ulps = report.deviations[i].ulps;
    if (std::isfinite(ulps) && (is_linear || ulps != 0)) ++bins[bin_of(ulps)];
  }
  Curve curve{"", {}, {}, Look::bars};
  if (compared == 0 || bins.empty()) return figure;
  const auto edge = [&](double bin) {
    return is_linear ? (bin - 0.5) * step : std::exp2(bin / parts);
  };
  const double last = bins.rbegin()->first;
  for (double bin = bins.begin()->first; bin <= last; ++bin) {
    const auto found = bins.find(bin);
    const std::size_t count = found == bins.end() ? 0 : found->second;
    curve.add(edge(bin), 100 * static_cast<double>(count) / static_cast<double>(compared));
  }
  curve.add(edge(last + 1), 0);
  figure.curves.push_back(curve);
  figure.title += ": " +
                  number_label(100 * static_cast<double>(equal) / static_cast<double>(compared)) +
                  " % are equal";
  if (!is_linear) {
    figure.x_label = "|D - reference| (ulp) of the others";
    figure.log_x = true;
  }
  return figure;
}

}  // namespace

Drawing error_picture(const ErrorReport& report, const ChartOptions& options) {
  const Figure histogram = histogram_of(report);
  const bool has_histogram = !histogram.curves.empty();
  constexpr double beside = 560, map_height = 360;
  const bool is_wide = has_histogram && options.width >= beside;
  const double map_width = is_wide ? options.width / 2 : options.width;
  const double under = has_histogram ? chart_height(histogram, map_width) : 0;
  const double height = options.height != 0 ? options.height
                        : is_wide           ? std::max(map_height, under)
                                            : map_height + under;
  Drawing drawing(options.width, height, "errors of " + report.file + " from " + report.reference);
  const double border = is_wide ? height : height * map_height / (map_height + under);
  draw_map(drawing, {0, 0, map_width, border}, tiles_of(report));
  if (has_histogram)
    draw_chart(
        drawing,
        is_wide ? Box{map_width, 0, options.width, height} : Box{0, border, options.width, height},
        histogram, options);
  return drawing;
}

}  // namespace guardbit::tools
