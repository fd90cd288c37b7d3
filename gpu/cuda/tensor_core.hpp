#pragma once

#include "gpu/batch.hpp"

namespace guardbit::gpu {

/// Packs the inputs, runs the instruction on the current CUDA device, and fills batch.d.
/// formats::Error for what CUDA refuses.
void run_on_tensor_core(const TensorCoreInstruction& row, Batch& batch);

}  // namespace guardbit::gpu
