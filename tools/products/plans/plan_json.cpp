#include "tools/products/plans/plan_json.hpp"

#include <nlohmann/json.hpp>

namespace guardbit::tools {

nlohmann::ordered_json to_json(const emulator::GemmPlan& plan) {
  nlohmann::ordered_json j = {{"text", emulator::to_text(plan)}};
  for (const emulator::PlanField& field : emulator::fields_of(plan)) j[field.key] = field.value;
  return j;
}

}  // namespace guardbit::tools
