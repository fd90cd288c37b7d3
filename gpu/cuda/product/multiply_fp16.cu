#include "gpu/cuda/product/multiply.cuh"

namespace guardbit::gpu {

std::optional<TunedKernel> fp16_kernel(const TunedInstruction& instruction) {
  return kernel_for<Accumulated::fp16, false, 4, 8, 16, 32>(instruction.terms);
}

}  // namespace guardbit::gpu
