#pragma once

#include "emulator/functions/function.hpp"
#include "emulator/functions/function_errors.hpp"
#include "tools/plot/chart.hpp"

namespace guardbit::tools {

/// How often a function's results are how far from the exact ones, as a picture.
Drawing function_error_picture(const emulator::Function& function,
                               const emulator::FunctionErrors& errors, const ChartOptions& options);

}  // namespace guardbit::tools
