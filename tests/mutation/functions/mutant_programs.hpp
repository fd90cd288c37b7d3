#pragma once

#include <span>
#include <string_view>

#include "emulator/functions/function.hpp"

// CUDA's programs with the changes of program_change.
namespace guardbit::tests {

struct MutantProgram {
  /// of the function in the catalogue
  std::string_view name;
  emulator::ResultCodes (*results)(const emulator::OperandCodes& operands) = nullptr;
};
std::span<const MutantProgram> mutant_programs();
/// Null where there is none of that name.
const MutantProgram* find_mutant_program(std::string_view name);

}  // namespace guardbit::tests
