#pragma once

#include <string_view>

#include "emulator/engine/engine.hpp"
#include "emulator/gemm/plan.hpp"

// The engine that executes a plan.
namespace guardbit::emulator {

/// What executes a plan's unit: an engine, or "host", which has the multiply-adds of CUDA cores.
struct PlanEngine {
  std::string_view name;
  /// null for "host"
  const Engine* engine = nullptr;
};

/// The one of that name; "auto" is the first model that takes the plan's unit. formats::Error when
/// the name is unknown or the unit is not taken, with the names that could stand there.
PlanEngine plan_engine(std::string_view name, const GemmPlan& plan);

}  // namespace guardbit::emulator
