#pragma once

// What a result says before any plan is tried. Input: a capture and its possible units. Output: the
// units in a better order, by how near the result lies to the exact product of the operands as each
// unit converts them. candidates.cpp calls it first.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "emulator/capture/product_capture.hpp"
#include "emulator/gemm/plan.hpp"
#include "emulator/plan_search/units.hpp"

namespace guardbit::emulator {

/// The problem with A and B as the plan's unit takes them; unchanged if the unit takes the operands
/// as they are or in several pieces.
GemmProblem as_multiplied(const GemmProblem& problem, const GemmPlan& plan);

/// D in FP64, from FP64 products and sums; with C and the bias if `addends` is true.
CodeMatrix nearly_exact(const GemmProblem& problem, const Epilogue& epilogue, bool addends,
                        int threads);

struct ResultEvidence {
  /// the first so many units fit the result
  std::size_t supported = 0;
  /// the result is as near to a product as rounded sums can be
  bool plausible = true;
};

/// Puts the units first that fit the result. Two facts decide. The partition of K moves a sum by
/// the last bits of its accumulator, but another conversion moves it by the last bits of the
/// operands: the conversion with the much smaller distance was made. And an FP16 result further
/// from the exact one than half a ulp or so comes from FP16 sums.
ResultEvidence put_supported_first(const GemmCapture& capture, std::vector<UnitChoice>& units);

}  // namespace guardbit::emulator
