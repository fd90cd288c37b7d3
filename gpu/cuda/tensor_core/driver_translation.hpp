#pragma once

#include "gpu/operands/tensor_core_batch.hpp"

// Instructions whose PTX the driver compiles when the program runs.
namespace guardbit::gpu {

/// As run_on_tensor_core, but from PTX text that the driver compiles now: what a program gets that
/// ships PTX and no machine code for the device. formats::Error for what the driver refuses.
void run_translated_by_driver(const TensorCoreInstruction& instruction, Batch& batch);

}  // namespace guardbit::gpu
