#pragma once

#include <string>
#include <vector>

#include "tools/plot/series_style.hpp"

namespace guardbit::tools {

struct Series {
  const experiments::Curve* curve = nullptr;
  /// in its panel; of curves with the same points, where there are many, all names
  std::string name;
  SeriesStyle style;
  /// while panels are made: the names of others with the same points
  std::vector<std::string> equal = {};
};

struct Panel {
  std::string title;
  std::vector<Series> series;
};

/// One panel, or small multiples of at most eight series each: by the first or the last part of
/// "what, which", by the first word, or by the letters that names begin with.
std::vector<Panel> panels_of(const experiments::Figure& figure);

/// Series of all panels, each name once; more than eight where each panel needs a legend of its
/// own.
std::vector<Series> legend_of(const std::vector<Panel>& panels);

}  // namespace guardbit::tools
