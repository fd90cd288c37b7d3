#pragma once

#include <array>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "emulator/functions/function.hpp"

// Programs of CUDA's functions with one constant changed, and the arguments whose results tell.
namespace guardbit::tests {

/// What a program gives: of all functions that are asked the model has the hardware's digest.
struct FunctionVector {
  std::string function;
  emulator::OperandCodes operands{};
  emulator::ResultCodes results{};
};

/// A constant of a function's program, and the number of its last places that it has to be another
/// by, up and down, for some vector to notice; a power of 2, or 0 where none of up to 2^20 is
/// noticed.
struct ConstantFact {
  std::string function;
  std::uint32_t constant = 0;
  std::uint32_t up = 0, down = 0;
};

/// tests/mutation/function_vectors.txt: lines of vectors, "v NAME OPERAND... RESULT..." with codes
/// in hex, and of constants, "c NAME CODE UP DOWN".
struct FunctionSurvey {
  std::vector<FunctionVector> vectors;
  std::vector<ConstantFact> constants;
};
FunctionSurvey read_function_survey();
void write_function_survey(const FunctionSurvey& survey);

/// The functions that are asked: programs of FP32 numbers.
std::vector<const emulator::Function*> surveyed_functions();

/// The constants that a result is made of.
std::set<std::uint32_t> constants_of(const emulator::Function& function,
                                     const emulator::OperandCodes& operands);
/// The results by a program in which `constant` is larger by so many places, or smaller.
emulator::ResultCodes results_by(const emulator::Function& function,
                                 const emulator::OperandCodes& operands, std::uint32_t constant,
                                 std::int32_t change);

/// Searches vectors that notice every constant.
FunctionSurvey search_function_survey();

}  // namespace guardbit::tests
