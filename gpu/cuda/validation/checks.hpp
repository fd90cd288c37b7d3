#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gpu/operands/tensor_core_batch.hpp"

// Checks of a device's recordings that need no model.
namespace guardbit::gpu {

/// What a recording of the current device must fulfil whatever the model says; one line for each
/// breach. Runs the instruction again on other operands:
/// - small integers, exact under every rule: wrong results mean a wrong fragment map;
/// - integer results are one wrap or one saturation of the exact total;
/// - the registers that scale-d = 0 makes the unit ignore may hold anything;
/// - a variant gives what the plain form of the instruction gives on the same operands.
std::vector<std::string> check_recording(const TensorCoreInstruction& instruction,
                                         const Batch& recorded, std::uint64_t seed);

}  // namespace guardbit::gpu
