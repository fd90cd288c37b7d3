#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "emulator/gemm/plan.hpp"
#include "emulator/gemm/problem.hpp"
#include "emulator/model/instruction.hpp"
#include "experiments/accuracy/roundings.hpp"

// Rounding errors of what multiplies and accumulates.
namespace guardbit::experiments {

struct UnitErrors {
  /// of its operands, of the addend that a chain begins with, and of its sums
  formats::Format a{}, b{}, c{}, sum{};
  /// whose smallest exponent it aligns by
  formats::Format least_a{}, least_b{};
  /// of a product, where that is rounded before it is added
  Roundings product;
  /// of the accumulation of `k` products
  Roundings execution;
  std::int64_t k = 1;
  /// Subnormal operands count as zero.
  bool flushes = false;
};

/// formats::Error, beginning with `where`, for a unit that is not known.
UnitErrors unit_errors(const emulator::GemmPlan& plan, const emulator::GemmProblem& problem,
                       std::string_view where);

}  // namespace guardbit::experiments
