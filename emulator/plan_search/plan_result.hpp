#pragma once

#include <cstdint>

#include "emulator/gemm/plan.hpp"

// A plan that was tried, and how it did.
namespace guardbit::emulator {

/// A plan and the number of outputs that it gets wrong.
struct PlanResult {
  GemmPlan plan;
  std::int64_t mismatches = 0;
};

}  // namespace guardbit::emulator
