#include "emulator/gemm/plan_engine.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "emulator/catalogue/instruction_catalogue.hpp"
#include "emulator/engine/continuation.hpp"
#include "emulator/engine/engines.hpp"
#include "emulator/gemm/gemm_operands.hpp"
#include "formats/support/error.hpp"

namespace guardbit::emulator {

namespace {

constexpr std::string_view host = "host";

/// Those that take the unit, in the order of engines().
std::vector<PlanEngine> engines_of(const GemmUnit& unit) {
  if (unit.arch == "simt") {
    scalar_format(unit, "plan");
    return {{host, nullptr}};
  }
  const MatrixInstruction instruction = require_instruction(unit.arch, unit.instruction, "plan");
  const std::optional<Continuation> continuation = continuation_of(instruction);
  std::vector<PlanEngine> list;
  for (const Engine& engine : engines())
    if (engine.accepts(continuation ? continuation->instruction : instruction))
      list.push_back({engine.name, &engine});
  return list;
}

bool is_known(std::string_view name) {
  return name == host || name == "auto" ||
         std::ranges::any_of(engines(), [&](const Engine& x) { return x.name == name; });
}

}  // namespace

PlanEngine plan_engine(std::string_view name, const GemmPlan& plan) {
  std::string names = "auto";
  for (const PlanEngine& x : engines_of(plan.unit)) {
    const bool is_model = x.engine == nullptr || x.engine->device == nullptr;
    if (name == x.name || (name == "auto" && is_model)) return x;
    names += ", " + std::string(x.name);
  }
  if (!is_known(name))
    throw formats::Error("engine", "unknown engine '" + std::string(name) + "'", names);
  throw formats::Error(
      "engine " + std::string(name),
      "does not execute " + plan.unit.arch + "/" + plan.unit.instruction + " on this CPU", names);
}

}  // namespace guardbit::emulator
