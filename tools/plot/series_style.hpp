#pragma once

#include <string>
#include <vector>

#include "experiments/harness/experiment.hpp"
#include "tools/plot/drawing.hpp"

namespace guardbit::tools {

struct SeriesStyle {
  std::string colour;
  int shape = 0;
  /// of its line; empty: none
  std::string dashes = {};
  bool is_open = false;
};

constexpr std::size_t most_series = 8;

/// How each curve of a picture looks. Formats, machines, distributions and what else has a line in
/// the table look the same in every picture; the rest takes what these leave. Of "what, which" the
/// colour follows `what` where several curves share it, and shape and dashes `which`. A reference
/// has the colour of the curve whose name its own begins with, and is open.
std::vector<SeriesStyle> styles_of(const std::vector<experiments::Curve>& curves);

}  // namespace guardbit::tools
