#pragma once

#include <string>

#include "experiments/experiment.hpp"

namespace guardbit::tools {

/// Throws formats::Error, beginning with `where`, unless gnuplot is installed.
void require_gnuplot(const std::string& where);
bool has_gnuplot();

/// The figure as SVG, drawn by gnuplot. formats::Error when it fails.
void write_svg(const std::string& path, const experiments::Figure& figure);

/// The same in characters, `width` columns wide.
std::string text_plot(const experiments::Figure& figure, int width = 76, int height = 18);

}  // namespace guardbit::tools
