#include "formats/conversion/kernels/conversion_kernels.hpp"

#include <vector>

#include "formats/support/instruction_sets.hpp"

namespace guardbit::formats::kernels {

std::span<const Kernels* const> available() {
  static const std::vector<const Kernels*> rows = [] {
    [[maybe_unused]] const InstructionSets allowed = allowed_instruction_sets();
    std::vector<const Kernels*> found;
#if defined(__x86_64__)
    const bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    const bool has_avx512 =
        has_avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512bitalg") &&
        __builtin_cpu_supports("avx512vpopcntdq") && __builtin_cpu_supports("avx512vnni");
    if (has_avx512 && allowed >= InstructionSets::avx512) found.push_back(avx512);
    if (has_avx2 && allowed >= InstructionSets::avx2) found.push_back(avx2);
#elif defined(__aarch64__)
    if (allowed >= InstructionSets::neon) found.push_back(neon);
#endif
    found.push_back(portable);
    return found;
  }();
  return rows;
}

}  // namespace guardbit::formats::kernels
