#pragma once

#include <span>

#include "gpu/tensor_core_instruction.hpp"

namespace guardbit::gpu {

/// Device addresses of the packed operands of `images` runs (one warp or warpgroup each); see
/// packing.hpp.
struct DeviceImages {
  const void *a, *b, *c, *e;
  void* d;
  int images;
  int a_bytes, b_bytes, c_bytes, d_bytes;             ///< of one image
  const void *a_scale = nullptr, *b_scale = nullptr;  ///< block-scaled instructions only
};

using Kernel = void (*)(const DeviceImages&);

/// Kernels of each generated file, in the order of its rows.
std::span<const Kernel> mma_kernels();
std::span<const Kernel> mma_sp_kernels();
std::span<const Kernel> wmma_kernels();
std::span<const Kernel> wgmma_kernels();

inline Kernel kernel_of(const TensorCoreInstruction& row) {
  const auto index = static_cast<std::size_t>(row.index);
  switch (row.group) {
    case Group::mma: return mma_kernels()[index];
    case Group::mma_sp: return mma_sp_kernels()[index];
    case Group::wmma: return wmma_kernels()[index];
    case Group::wgmma: break;
  }
  return wgmma_kernels()[index];
}

}  // namespace guardbit::gpu
