#pragma once

// Scales of operands that were read from other places, or taken as other numbers.

#include <cstdint>

#include "emulator/capture/product_capture.hpp"
#include "emulator/faults/fault_hypotheses.hpp"

namespace guardbit::emulator {

/// Batch entry g is wrong. `x` is some rows and columns of it, all of which must agree then.
Faults find_misread_scales(const GemmCapture& capture, const GemmProblem& problem, std::int64_t g,
                           const ProductNumbers& x);

}  // namespace guardbit::emulator
