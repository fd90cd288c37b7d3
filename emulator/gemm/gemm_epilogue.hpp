#pragma once

#include <vector>

#include "emulator/gemm/plan.hpp"
#include "emulator/gemm/problem.hpp"
#include "emulator/gemm/sums.hpp"

// D of sums: what a plan does after the last product.
namespace guardbit::emulator {

/// D of sums that an epilogue takes.
CodeMatrix finish(const Epilogue& epilogue, const GemmProblem& problem, const Sums& sums,
                  int threads = 1);

/// D of the parts' sums: added, and sent through the epilogue.
CodeMatrix finish(const GemmPlan& plan, const GemmProblem& problem, std::vector<Sums> parts,
                  int threads = 1);

}  // namespace guardbit::emulator
