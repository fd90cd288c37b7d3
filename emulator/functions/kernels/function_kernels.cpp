#include "emulator/functions/kernels/function_kernels.hpp"

#include <algorithm>
#include <array>
#include <cstring>
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

void run_on_numbers(const FunctionKernel& kernel, std::span<const float> x,
                    std::span<const float> y, std::span<float> results) {
  // Codes in parts that stay in the first cache.
  std::array<std::array<std::uint32_t, 1024>, 2> codes;
  const std::size_t at_once = codes[0].size();
  for (std::size_t begin = 0; begin < results.size(); begin += at_once) {
    const std::size_t count = std::min(at_once, results.size() - begin);
    std::memcpy(codes[0].data(), x.data() + begin, count * sizeof(float));
    if (!y.empty()) std::memcpy(codes[1].data(), y.data() + begin, count * sizeof(float));
    kernel.run(codes[0].data(), y.empty() ? nullptr : codes[1].data(), codes[0].data(), count);
    std::memcpy(results.data() + begin, codes[0].data(), count * sizeof(float));
  }
}

}  // namespace guardbit::emulator
