#pragma once

#include <optional>
#include <string>
#include <vector>

#include "experiments/harness/experiment.hpp"
#include "tools/plot/axis.hpp"
#include "tools/plot/drawing.hpp"

// Figures as pictures.
namespace guardbit::tools {

/// Below the axis of a histogram: what a format holds.
struct Strip {
  std::string name;
  double first = 0, first_normal = 0, last = 0;
};

struct ChartOptions {
  double width = 640;
  /// 0: what the picture needs
  double height = 0;
  /// instead of the figure's own
  std::optional<bool> log_x = {}, log_y = {};
  /// instead of what fits the numbers
  std::optional<Range> x = {}, y = {};
};

/// Whether the figure's axes have a place for this point.
bool is_drawable(const experiments::Figure& figure, double x, double y);
/// Without the curves that have no such point.
experiments::Figure drawn_part(experiments::Figure figure);

/// The figure as a picture: lines and points, or a row of dots for each of its categories. More
/// than eight series become small multiples with the same axes, by the first or the last part of
/// their names. Throws formats::Error where the size is too small for it.
Drawing chart(const experiments::Figure& figure, const ChartOptions& options = {},
              const std::vector<Strip>& strips = {});

/// The height that a chart takes if none is asked for; a chart as a part of a larger drawing.
double chart_height(const experiments::Figure& figure, double width, std::size_t strips = 0);
void draw_chart(Drawing& drawing, const Box& area, const experiments::Figure& figure,
                const ChartOptions& options = {}, const std::vector<Strip>& strips = {});

}  // namespace guardbit::tools
