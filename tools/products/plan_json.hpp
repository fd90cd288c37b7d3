#pragma once

#include <nlohmann/json.hpp>

#include "emulator/gemm/plan.hpp"

// Plans in JSON.
namespace guardbit::tools {

/// A plan as an object of its keys, and the line itself as "text".
inline nlohmann::ordered_json to_json(const emulator::GemmPlan& plan) {
  nlohmann::ordered_json j = {{"text", emulator::to_text(plan)}};
  for (const emulator::PlanField& field : emulator::fields_of(plan)) j[field.key] = field.value;
  return j;
}

}  // namespace guardbit::tools
