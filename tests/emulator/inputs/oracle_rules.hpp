#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "emulator/model/instruction.hpp"
#include "tests/emulator/inputs/catalogue_inputs.hpp"
#include "tests/oracle/dot.hpp"

namespace guardbit::tests {

/// The independent judge of one instruction.
struct Judge {
  /// name of the rule and its parameters: instructions with equal text are judged alike
  std::string rule;
  /// no source gives the NaN's bits
  bool nan_is_any_nan = false;
  std::function<std::uint64_t(const DotInputs&)> answer;
};

/// NUMERICS.md read a second time: what the instruction should compute, inferred from its
/// architecture, name, family, types, shape and toolkit alone. Never looks at the instruction's
/// steps. Throws std::invalid_argument for an instruction that no rule describes.
Judge judge_of(const MatrixInstruction& instruction);

/// The oracle's parameters of a catalogued format, found by its name.
oracle::FormatParameters oracle_format(const formats::Format& format);

/// Do a computed and a judged result of the instruction agree?
bool agree(const MatrixInstruction& instruction, const Judge& judge, std::uint64_t computed,
           std::uint64_t judged);

/// "arch, name, toolkit": how a failed check names an instruction.
std::string text_of(const MatrixInstruction& instruction);
/// All operands in hex.
std::string text_of(const DotInputs& inputs);

}  // namespace guardbit::tests
