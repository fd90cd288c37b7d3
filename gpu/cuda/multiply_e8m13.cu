#include "gpu/cuda/multiply.cuh"

namespace guardbit::gpu {

std::optional<TunedKernel> e8m13_kernel(const TunedRow& row) {
  constexpr Accumulated kind = Accumulated::e8m13;
  switch (row.terms) {
    case 16: return kernel_of<UsualShape<16, kind>>();
    case 32: return kernel_of<UsualShape<32, kind>>();
    default: return std::nullopt;
  }
}

}  // namespace guardbit::gpu
