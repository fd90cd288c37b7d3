#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "emulator/capture/product_capture.hpp"
#include "emulator/gemm/plan.hpp"
#include "emulator/plan_search/units.hpp"

// What a result says before any plan is tried: how near it lies to exact products.
namespace guardbit::emulator {

/// Up to `count` outputs of different rows and columns: steps of the golden section fall into no
/// pattern.
std::vector<Output> scattered_outputs(const CodeMatrix& d, std::int64_t count);

/// The problem with A and B as the plan's unit takes them, where it converts them once.
GemmProblem as_multiplied(const GemmProblem& problem, const GemmPlan& plan);

/// D in FP64 of products and sums that are nearly exact; of C and the bias, too, where `addends`.
CodeMatrix nearly_exact(const GemmProblem& problem, const Epilogue& epilogue, bool addends,
                        int threads);

struct ResultEvidence {
  std::size_t supported = 0;  ///< units that the result speaks for
  bool plausible = true;      ///< the result is as near to a product as rounded sums can be
};

/// Puts the units first that a recorded result speaks for. The way in
/// which K is dealt moves a sum by its accumulator's last bits, another conversion of the operands
/// by theirs: where the exact product of one conversion lies much nearer than another's, that one
/// was made. And where a result of FP16 lies further from the exact one than its own rounding
/// takes it, the sums were FP16, too.
ResultEvidence put_supported_first(const GemmCapture& capture, std::vector<UnitChoice>& units);

}  // namespace guardbit::emulator
