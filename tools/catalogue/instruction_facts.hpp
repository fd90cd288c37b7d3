#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "emulator/model/instruction.hpp"

// What an instruction of the catalogue says, in words.
namespace guardbit::tools {

/// The arithmetic in one line: "blocks of 16, F = 25, e0 = -133, truncated to fp32". Equal for
/// instructions that compute alike.
std::string arithmetic_summary(const emulator::MatrixInstruction& instruction);

/// The arithmetic in sentences.
std::vector<std::string> arithmetic_description(const emulator::MatrixInstruction& instruction);

/// "m16n8k16"; M or N stand where the instruction leaves them open.
std::string shape_name(const emulator::Shape& shape);

/// "from ptxas 13.0", "before ptxas 13.0", or nothing.
std::string toolkit_text(const emulator::Toolkit& toolkit);

/// "2 per 4 of K", "1 per 2 of K", "2 pairs per 4 pairs of K"; empty for dense instructions.
std::string sparsity_text(const emulator::Sparsity& sparsity);

/// "e8m0, one per 32 of K"; empty for instructions without scales.
std::string scale_text(const emulator::MatrixInstruction& instruction);

nlohmann::ordered_json instruction_json(const emulator::MatrixInstruction& instruction);

}  // namespace guardbit::tools
