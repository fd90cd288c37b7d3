#include "gpu/cuda/product/multiply.cuh"

namespace guardbit::gpu {

std::optional<TunedKernel> e8m13_kernel(const TunedRow& row) {
  return kernel_for<Accumulated::e8m13, false, 16, 32>(row.terms);
}

}  // namespace guardbit::gpu
