#pragma once

#include <string_view>

#include "emulator/engine/kernels/shared/vector_set.hpp"
#include "formats/support/instruction_sets.hpp"

namespace guardbit::tests {

/// Whether this CPU has what engines and kernels use of `sets`: by CPUID's own bits, so that a
/// library that overlooks them is found out.
bool cpu_has(formats::InstructionSets sets);

/// Whether they are here: the CPU has them and GUARDBIT_CPU does not mask them.
bool is_here(formats::InstructionSets sets);

/// Whether such an engine must be here: the CPU has the instructions and GUARDBIT_CPU does not mask
/// them. Where not, prints what makes ctest report the case as skipped, so the case returns before
/// it checks anything.
bool can_test(formats::InstructionSets sets);

// What TEMPLATE_TEST_CASE is given to make a case of each engine, or of each set of kernels.
struct Avx512 {
  static constexpr std::string_view name = "avx512";
  static constexpr auto sets = formats::InstructionSets::avx512;
  static constexpr auto vector_set = emulator::VectorSet::avx512;
};
struct Avx2 {
  static constexpr std::string_view name = "avx2";
  static constexpr auto sets = formats::InstructionSets::avx2;
  static constexpr auto vector_set = emulator::VectorSet::avx2;
};
struct Neon {
  static constexpr std::string_view name = "neon";
  static constexpr auto sets = formats::InstructionSets::neon;
  static constexpr auto vector_set = emulator::VectorSet::neon;
};
struct Portable {
  static constexpr std::string_view name = "portable";
  static constexpr auto sets = formats::InstructionSets::baseline;
};

}  // namespace guardbit::tests
