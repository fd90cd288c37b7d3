#pragma once

#include <cstdint>
#include <string>

#include "emulator/capture/product_capture.hpp"
#include "emulator/gemm/plan.hpp"

// What a wrong kernel may have left out.
namespace guardbit::emulator {

/// What was left out of these outputs of a plan: computed without it they are `recorded`. C, the
/// bias, a factor, the sum of one slice, or elements of K; empty where nothing is found.
std::string left_out_of(const GemmProblem& problem, const CodeMatrix& recorded,
                        const GemmPlan& plan);

/// The problem with those elements of K of A set to zero.
GemmProblem without_elements(GemmProblem problem, const KRanges& ranges);

/// "missed K tail: the last 64 of 4096 elements of K are missing"
std::string missing_text(const KRange& range, std::int64_t k);

}  // namespace guardbit::emulator
