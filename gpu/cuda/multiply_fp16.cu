#include "gpu/cuda/multiply.cuh"

namespace guardbit::gpu {

std::optional<TunedKernel> fp16_kernel(const TunedRow& row) {
  constexpr Accumulated kind = Accumulated::fp16;
  switch (row.terms) {
    case 4: return kernel_of<UsualShape<4, kind>>();
    case 8: return kernel_of<UsualShape<8, kind>>();
    case 16: return kernel_of<UsualShape<16, kind>>();
    case 32: return kernel_of<UsualShape<32, kind>>();
    default: return std::nullopt;
  }
}

}  // namespace guardbit::gpu
