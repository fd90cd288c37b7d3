#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "emulator/capture/product_capture.hpp"
#include "emulator/plan_search/plan_search.hpp"
#include "emulator/plan_search/samples.hpp"

// Plans that give all but some places of a result: is it damaged there, or another plan's?
namespace guardbit::emulator {

/// A plan that nearly passes: mismatches on all outputs, and on the last sample before them.
struct Close {
  PlanResult result;
  std::int64_t on_sample = 0;
  std::int64_t far = 0;        ///< mismatches of more than 16 codes
  std::int64_t off_ties = 0;   ///< mismatches that are not near ties of D's rounding
  std::int64_t cells = 0;      ///< squares of 8 x 8 outputs that hold a mismatch
  std::vector<Output> failed;  ///< a few mismatches
  std::size_t beyond = 0;      ///< those that no order of the sums comes near
};

/// What a close plan's mismatches on a task that holds all outputs look like. `sums`: the format of
/// the plan's accumulator.
void describe_mismatches(const GemmCapture& capture, const Task& task, const CodeMatrix& computed,
                         const Format& sums, int threads, Close& close);

/// Does the plan fail in so few places that the result is damaged rather than another plan's?
/// Another plan's sums differ all over, damage is where it is. Where D is narrow, another plan
/// fails in few places, too, but next to ties of its rounding; damage does not choose them.
bool nearly_explains(const Close& close, const GemmCapture& capture);

}  // namespace guardbit::emulator
