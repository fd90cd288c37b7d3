#pragma once

// A problem without some elements of K, and the words for it.

#include <cstdint>
#include <string>

#include "emulator/gemm/plan.hpp"
#include "emulator/gemm/problem.hpp"

namespace guardbit::emulator {

/// The problem with these elements of K of A set to zero.
GemmProblem without_elements(GemmProblem problem, const KRanges& ranges);

/// "missed K tail: the last 64 of 4096 elements of K are missing"
std::string missing_text(const KRange& range, std::int64_t k);

}  // namespace guardbit::emulator
