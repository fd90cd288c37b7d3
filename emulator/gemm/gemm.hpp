#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "emulator/gemm/chain.hpp"
#include "emulator/gemm/gemm_epilogue.hpp"
#include "emulator/gemm/gemm_operands.hpp"
#include "emulator/gemm/plan.hpp"
#include "emulator/gemm/problem.hpp"
#include "emulator/gemm/sums.hpp"

// A matrix product as a library computes it. Input: a plan (plan.hpp) and a problem (problem.hpp).
// Output: D, bit for bit.
namespace guardbit::emulator {

/// The sum of each part of `plan.split`, as it leaves the thread block; with stream-K one part, the
/// sums of its blocks added.
std::vector<Sums> partial_sums(const GemmPlan& plan, const GemmOperands& operands,
                               const GemmProblem& problem, const Execution& execution);

struct ExecuteOptions {
  /// as plan_engine (plan_engine.hpp) takes it
  std::string_view engine = "auto";
  /// 0: all; the result does not depend on their number
  int threads = 0;
  /// Told now and then, on the caller's thread, how many rows are done; ends the work by answering
  /// false.
  std::function<bool(std::int64_t)> progress = {};
  /// Outputs that are computed together at most; the result does not depend on it.
  std::int64_t most_outputs = std::int64_t{1} << 24;
  /// For D, row by row, as large as it; nothing: memory of its own.
  std::span<std::byte> memory = {};
};

/// D of the plan.
CodeMatrix execute(const GemmPlan& plan, const GemmProblem& problem, const ExecuteOptions& options);
CodeMatrix execute(const GemmPlan& plan, const GemmProblem& problem, int threads = 0,
                   const std::function<bool(std::int64_t)>& progress = {});

}  // namespace guardbit::emulator
