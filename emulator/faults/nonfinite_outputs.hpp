#pragma once

// Outputs whose operands hold NaNs or infinities: which of them must be NaN or infinite, and are
// not. Such outputs say nothing of rounding, so nothing else here looks at them.

#include <cstdint>
#include <optional>
#include <vector>

#include "emulator/capture/product_capture.hpp"
#include "emulator/faults/fault.hpp"

namespace guardbit::emulator {

/// Nothing is said where zeros are not multiplied (sparse operands, convolutions) or operands have
/// scales.
bool is_looked_for_nonfinite(const GemmCapture& capture, const GemmProblem& problem);

struct LostNonfinite {
  Fault fault;
  /// rows and columns of D
  std::vector<std::pair<std::int64_t, std::int64_t>> outputs;
};

/// Batch entry g: outputs that are numbers where the operands give NaN or infinity, or infinite
/// with the other sign. A NaN in the place of an infinity is let pass: partial sums may overflow to
/// both.
std::optional<LostNonfinite> find_lost_nonfinite(const GemmCapture& capture,
                                                 const GemmProblem& problem, std::int64_t g);

}  // namespace guardbit::emulator
