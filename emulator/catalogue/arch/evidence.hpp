#pragma once

#include "emulator/model/instruction.hpp"

// Evidence that several pages of machines cite: how we know what their instructions compute.
namespace guardbit::emulator {

inline constexpr Evidence f16_results = {
    Basis::inferred,
    "L and F as published; e0 by the rule that an H200 confirms (docs/NUMERICS.md 1.3), where MMA-Sim has another"};

}  // namespace guardbit::emulator
