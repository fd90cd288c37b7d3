#include "gpu/cuda/multiply.cuh"

namespace guardbit::gpu {

namespace {

template <Accumulated kind>
std::optional<TunedKernel> kernel_for(int terms) {
  switch (terms) {
    case 8: return kernel_of<UsualShape<8, kind, true>>();
    case 16: return kernel_of<UsualShape<16, kind, true>>();
    default: return std::nullopt;
  }
}

}  // namespace

std::optional<TunedKernel> composed_kernel(const TunedRow& row) {
  switch (row.accumulated) {
    case Accumulated::fp32: return kernel_for<Accumulated::fp32>(row.terms);
    case Accumulated::fp16: return kernel_for<Accumulated::fp16>(row.terms);
    default: return std::nullopt;
  }
}

}  // namespace guardbit::gpu
