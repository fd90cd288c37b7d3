#pragma once

#include "gpu/cuda/device/device_operands.hpp"
#include "gpu/cuda/model/fused_instruction.hpp"

// The model kernel of instructions whose dot products are fused (NUMERICS 1.1), which is nearly all
// of them: 32-bit integers, and everything about the instruction that the inner loops ask worked
// out on the host.
namespace guardbit::gpu {

bool fused_accepts(const emulator::MatrixInstruction& instruction);

FusedInstruction fused_instruction(const ModelInstruction& model);

/// As run_model, for an instruction that `fused_accepts`.
void run_fused_model(const FusedInstruction& instruction, const DeviceOperands& operands,
                     const DeviceResults& results, DeviceTally* tally, const DeviceElements& d);

}  // namespace guardbit::gpu
