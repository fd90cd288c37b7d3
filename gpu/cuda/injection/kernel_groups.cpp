#include "gpu/cuda/tensor_core/tensor_core_kernels.hpp"

// The groups of kernels that guardbit_inject_faults has, instead of the generated table of all.
namespace guardbit::gpu {

std::span<const Kernel> mma_kernels();
std::span<const Kernel> mma_sp_kernels();
std::span<const Kernel> wmma_kernels();
std::span<const Kernel> wgmma_kernels();

std::span<const KernelGroup> kernel_groups() {
  static const KernelGroup groups[] = {{"mma", mma_kernels},
                                       {"mma_sp", mma_sp_kernels},
                                       {"wmma", wmma_kernels},
                                       {"wgmma", wgmma_kernels}};
  return groups;
}

}  // namespace guardbit::gpu
