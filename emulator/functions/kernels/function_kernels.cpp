#include "emulator/functions/kernels/function_kernels.hpp"

#include <algorithm>
#include <vector>

#include "emulator/engine/cpu.hpp"

namespace guardbit::emulator {

std::span<const FunctionEngine> function_engines() {
  static const std::vector<FunctionEngine> engines = [] {
    const cpu::Features& cpu = cpu::features();
    std::vector<FunctionEngine> usable;
    if (cpu.avx512_kernels) usable.push_back({"avx512", kernels::avx512});
    if (cpu.avx2_kernels) usable.push_back({"avx2", kernels::avx2});
    usable.push_back({"portable", {}});
    return usable;
  }();
  return engines;
}

const FunctionKernel* find_kernel(const FunctionEngine& engine, std::string_view name) {
  const auto found = std::ranges::find(engine.kernels, name, &FunctionKernel::name);
  return found == engine.kernels.end() ? nullptr : &*found;
}

}  // namespace guardbit::emulator
