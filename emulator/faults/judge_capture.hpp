#pragma once

// The verdict about a whole capture: batches, convolutions and products too large to be looked at
// element by element. Input: a capture. Output: what find_faults.hpp says of the outputs that were
// looked at, in the numbers of D, and which these were.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "emulator/capture/product_capture.hpp"
#include "emulator/faults/find_faults.hpp"

namespace guardbit::emulator {

struct CaptureJudgement {
  Judgement judgement;
  /// of D, of all its batch entries
  std::int64_t outputs = 0;
  /// some of the outputs that are wrong
  std::vector<Output> examples = {};
  /// plain sentences about what was not looked at; empty if everything was
  std::vector<std::string> limits = {};
};

/// Looks at all outputs of a small product. Of a large one it looks at some rows and columns:
/// those that products of D with random signs show to be wrong, and others spread over D.
CaptureJudgement judge(const GemmCapture& capture, const std::function<bool()>& interrupted = {});

}  // namespace guardbit::emulator
