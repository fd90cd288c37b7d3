#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/plot/chart.hpp"

namespace CLI {
class App;
}

namespace guardbit::tools {

/// --plot of a command, with what shapes the picture.
struct PlotOptions {
  std::string path;
  double width = 0, height = 0;
  std::string x, y;
  std::vector<std::string> ranges;

  bool asked() const { return !path.empty(); }
  /// Throws formats::Error, before anything is computed, unless this can be drawn: a name in .svg,
  /// .pdf or .png, its converter where one is needed, ranges that are some.
  void require_valid() const;
  ChartOptions chart() const;
};

/// `what`: "Draw … into this file". `has_axes`: with --x, --y and --range.
void add_plot_options(CLI::App& command, PlotOptions& options, const std::string& what,
                      bool has_axes = true);

/// As SVG, PDF or PNG, by the path's extension; whole or not at all. PDF and PNG are made by
/// rsvg-convert.
void write_picture(const std::string& path, const Drawing& drawing);

}  // namespace guardbit::tools
