#pragma once

#include "tools/plot/chart.hpp"
#include "tools/products/error_report.hpp"

namespace guardbit::tools {

/// The largest error of each tile of the result, and how often each distance from the reference
/// occurs, which the options shape.
Drawing error_picture(const ErrorReport& report, const ChartOptions& options);

}  // namespace guardbit::tools
