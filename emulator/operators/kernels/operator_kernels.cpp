#include "emulator/operators/kernels/operator_kernels.hpp"

#include <algorithm>

#include "emulator/engine/cpu.hpp"
#include "emulator/operators/kernels/adam_kernel.hpp"

namespace guardbit::emulator::operators {

const PointwiseKernel* find_pointwise_kernel(std::string_view name) {
  const cpu::Features& cpu = cpu::features();
  std::span<const PointwiseKernel> all;
  if (cpu.avx2_kernels) all = kernels::avx2;
  if (cpu.avx512_kernels) all = kernels::avx512;
  const auto found = std::ranges::find(all, name, &PointwiseKernel::name);
  return found == all.end() ? nullptr : &*found;
}

kernels::AdamKernel find_adam_kernel() {
  const cpu::Features& cpu = cpu::features();
  if (cpu.avx512_kernels) return kernels::adam_avx512;
  return cpu.avx2_kernels ? kernels::adam_avx2 : nullptr;
}

}  // namespace guardbit::emulator::operators
