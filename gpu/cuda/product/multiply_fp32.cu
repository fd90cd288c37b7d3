#include "gpu/cuda/product/multiply.cuh"

namespace guardbit::gpu {

std::optional<TunedKernel> fp32_kernel(const TunedInstruction& instruction) {
  return kernel_for<Accumulated::fp32, false, 4, 8, 16, 32>(instruction.terms);
}

}  // namespace guardbit::gpu
