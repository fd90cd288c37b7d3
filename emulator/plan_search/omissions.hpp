#pragma once

// What a wrong kernel left out, found by execution. Input: a plan and outputs that it does not
// give. Output: the thing without which the plan gives them bit for bit. The search uses it to call
// a result damaged, the diagnosis to say why. variants.hpp does the same without a plan.

#include <cstdint>
#include <string>

#include "emulator/capture/product_capture.hpp"
#include "emulator/gemm/plan.hpp"

namespace guardbit::emulator {

/// Executes the plan without C, the bias, alpha or beta, without one partial sum, and without
/// ranges of K; returns a sentence for the first that gives `recorded`, else an empty string.
std::string find_omission(const GemmProblem& problem, const CodeMatrix& recorded,
                          const GemmPlan& plan);

}  // namespace guardbit::emulator
