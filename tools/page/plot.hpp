#pragma once

#include <optional>
#include <string>

#include "experiments/harness/experiment.hpp"

namespace guardbit::tools {

/// Throws formats::Error, beginning with `where`, unless gnuplot is installed.
void require_gnuplot(const std::string& where);
bool has_gnuplot();

struct SvgSize {
  int width = 800, height = 520;
};

/// The figure as SVG, drawn by gnuplot; nothing where it has no point that can be drawn.
/// formats::Error when that fails.
std::optional<std::string> svg_of(const experiments::Figure& figure, const SvgSize& size = {});
/// The same as a file.
void write_svg(const std::string& path, const experiments::Figure& figure);

/// The same in characters, `width` columns wide.
std::string text_plot(const experiments::Figure& figure, int width = 76, int height = 18);

}  // namespace guardbit::tools
