#include "gpu/cuda/product/multiply.cuh"

namespace guardbit::gpu {

std::optional<TunedKernel> e8m13_kernel(const TunedInstruction& instruction) {
  return kernel_for<Accumulated::e8m13, false, 16, 32>(instruction.terms);
}

}  // namespace guardbit::gpu
