#pragma once

#include <nlohmann/json_fwd.hpp>

#include "emulator/gemm/plan.hpp"

namespace guardbit::tools {

/// A plan as an object of its keys, and the line itself as "text".
nlohmann::ordered_json to_json(const emulator::GemmPlan& plan);

}  // namespace guardbit::tools
