#pragma once

#include <string>

#include "experiments/harness/experiment.hpp"

namespace guardbit::tools {

/// The figure in characters, `width` columns wide; empty where it has no point that can be drawn.
std::string text_plot(const experiments::Figure& figure, int width = 76, int height = 18);

}  // namespace guardbit::tools
