#pragma once

#include "gpu/cuda/device/device_operands.hpp"
#include "gpu/cuda/model/fused_instruction.hpp"

// The model kernel of rows whose dot products are fused (NUMERICS 1.1), which is nearly all of
// them: 32-bit integers, and everything about the row that the inner loops ask worked out on the
// host.
namespace guardbit::gpu {

bool fused_accepts(const emulator::MatrixInstruction& instruction);

FusedInstruction fused_instruction(const ModelInstruction& model);

/// As run_model, for a row that `fused_accepts`.
void run_fused_model(const FusedInstruction& instruction, const DeviceOperands& operands,
                     const DeviceResults& results, DeviceTally* tally, const DeviceElements& d);

}  // namespace guardbit::gpu
