#include "tests/instruction_sets_here.hpp"

#include <iostream>

namespace guardbit::tests {

using formats::InstructionSets;

bool cpu_has(InstructionSets sets) {
#if defined(__x86_64__)
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  const bool avx512 =
      avx2 && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vbmi") &&
      __builtin_cpu_supports("avx512bitalg") && __builtin_cpu_supports("avx512vpopcntdq") &&
      __builtin_cpu_supports("avx512vnni");
  return sets == InstructionSets::avx512 ? avx512
         : sets == InstructionSets::avx2 ? avx2
                                         : sets == InstructionSets::baseline;
#elif defined(__aarch64__)
  return sets == InstructionSets::baseline || sets == InstructionSets::neon;
#else
  return sets == InstructionSets::baseline;
#endif
}

bool is_here(InstructionSets sets) {
  return cpu_has(sets) && formats::allowed_instruction_sets() >= sets;
}

bool can_test(InstructionSets sets) {
  const std::string_view name = sets == InstructionSets::avx512 ? Avx512::name
                                : sets == InstructionSets::avx2 ? Avx2::name
                                                                : Neon::name;
  if (!cpu_has(sets)) {
    std::cout << "SKIPPED: this CPU lacks instructions of " << name << '\n';
    return false;
  }
  if (formats::allowed_instruction_sets() < sets) {
    std::cout << "SKIPPED: GUARDBIT_CPU masks " << name << '\n';
    return false;
  }
  return true;
}

}  // namespace guardbit::tests
