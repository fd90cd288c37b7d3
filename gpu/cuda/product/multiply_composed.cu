#include "gpu/cuda/product/multiply.cuh"

namespace guardbit::gpu {

std::optional<TunedKernel> composed_kernel(const TunedInstruction& instruction) {
  switch (instruction.accumulated) {
    case Accumulated::fp32: return kernel_for<Accumulated::fp32, true, 8, 16>(instruction.terms);
    case Accumulated::fp16: return kernel_for<Accumulated::fp16, true, 8, 16>(instruction.terms);
    default: return std::nullopt;
  }
}

}  // namespace guardbit::gpu
