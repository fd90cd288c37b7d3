#include "formats/conversion/kernels/conversion_kernels.hpp"

#include <vector>

#include "formats/support/instruction_sets.hpp"

namespace guardbit::formats::kernels {

namespace {

bool runs_avx512() {
#if defined(__x86_64__)
  return allowed_instruction_sets() >= InstructionSets::avx512 &&
         __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512vbmi");
#else
  return false;
#endif
}

bool runs_avx2() {
#if defined(__x86_64__)
  return allowed_instruction_sets() >= InstructionSets::avx2 && __builtin_cpu_supports("avx2");
#else
  return false;
#endif
}

}  // namespace

std::span<const Kernels* const> available() {
  static const std::vector<const Kernels*> rows = [] {
    std::vector<const Kernels*> found;
    if (avx512 != nullptr && runs_avx512()) found.push_back(avx512);
    if (avx2 != nullptr && runs_avx2()) found.push_back(avx2);
    found.push_back(portable);
    return found;
  }();
  return rows;
}

}  // namespace guardbit::formats::kernels
