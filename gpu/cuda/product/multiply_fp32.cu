#include "gpu/cuda/product/multiply.cuh"

namespace guardbit::gpu {

std::optional<TunedKernel> fp32_kernel(const TunedRow& row) {
  return kernel_for<Accumulated::fp32, false, 4, 8, 16, 32>(row.terms);
}

}  // namespace guardbit::gpu
