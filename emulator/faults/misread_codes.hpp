#pragma once

// Operands whose bits are right and were read as other numbers: of another format, with their bytes
// in the other order, or of another batch entry.

#include <cstdint>

#include "emulator/capture/product_capture.hpp"
#include "emulator/faults/fault_hypotheses.hpp"

namespace guardbit::emulator {

/// A wrong batch entry g. Some of its outputs are looked at.
Faults find_misread_codes(const GemmCapture& capture, const GemmProblem& problem, std::int64_t g);

/// Batch entry g of D is the product of other entries of A, B or both.
Faults find_other_entry(const GemmCapture& capture, const GemmProblem& problem, std::int64_t g);

}  // namespace guardbit::emulator
