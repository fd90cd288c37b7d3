#pragma once

#include <functional>

#include "gpu/cuda/tensor_core/tensor_core_kernels.hpp"
#include "gpu/operands/tensor_core_batch.hpp"

// Tensor-core instructions on batches of the host.
namespace guardbit::gpu {

/// Packs the inputs, runs the instruction on the current CUDA device, and fills batch.d.
/// formats::Error for what CUDA refuses.
void run_on_tensor_core(const TensorCoreInstruction& instruction, Batch& batch);

/// The same with any kernel that `launch` starts.
void run_images(const TensorCoreInstruction& instruction, Batch& batch,
                const std::function<void(const DeviceImages&)>& launch);

}  // namespace guardbit::gpu
