#pragma once

#include <cstdint>

#include "emulator/model/batch.hpp"
#include "emulator/model/instruction.hpp"

// The portable kernel's integer instructions.
namespace guardbit::emulator::portable {

/// Does the instruction sum integers of at most 8 bits into 32?
bool is_integer_instruction(const MatrixInstruction& instruction);

/// Executes [begin, end) of a batch of an integer instruction.
void run_integer(const MatrixInstruction& instruction, const MatrixBatch& batch, std::int64_t begin,
                 std::int64_t end);

}  // namespace guardbit::emulator::portable
