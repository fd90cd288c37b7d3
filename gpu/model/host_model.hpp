#pragma once

#include "emulator/model/instruction.hpp"
#include "gpu/operands/tensor_core_batch.hpp"

// The model in place of a device.
namespace guardbit::gpu {

/// Fills batch.d with what `model` makes of the batch on this host; `instruction` says how the
/// batch is laid out and which operand choices (negation, ignored C) it asks for.
void run_on_host_model(const emulator::MatrixInstruction& model,
                       const TensorCoreInstruction& instruction, Batch& batch);

}  // namespace guardbit::gpu
