#pragma once

// Plans that give all but a few outputs. Input: such a plan's result next to the recorded one.
// Output: whether the recorded result is damaged in these places (the search can stop) or another
// plan's (the search goes on).

#include <cstddef>
#include <cstdint>
#include <vector>

#include "emulator/capture/product_capture.hpp"
#include "emulator/plan_search/plan_result.hpp"
#include "emulator/plan_search/samples.hpp"

namespace guardbit::emulator {

/// A plan with few mismatches, and what they look like.
struct NearMiss {
  /// mismatches on all outputs
  PlanResult result;
  /// mismatches on the third sample
  std::int64_t on_sample = 0;
  /// mismatches by more than 16 codes
  std::int64_t far = 0;
  /// mismatches that are not near a tie of D's rounding
  std::int64_t off_ties = 0;
  /// squares of 8 x 8 outputs with a mismatch
  std::int64_t cells = 0;
  /// a few of the mismatches
  std::vector<Output> failed;
  /// those of `failed` that no other order of the sums can give
  std::size_t out_of_reach = 0;
};

/// Describes the mismatches of `near_miss.result` on `sample`, which must hold all outputs. `sums`:
/// the format of the plan's accumulator.
void describe_mismatches(const GemmCapture& capture, const Sample& sample,
                         const CodeMatrix& computed, const Format& sums, int threads,
                         NearMiss& near_miss);

/// True if the mismatches look like damage: they lie together, while another plan's sums would
/// differ all over D. If D is narrow, another plan fails in few places, too, but near ties of D's
/// rounding; damage is anywhere.
bool nearly_explains(const NearMiss& near_miss, const GemmCapture& capture);

}  // namespace guardbit::emulator
