#pragma once

#include <cstdint>

#include "emulator/model/batch.hpp"
#include "emulator/model/instruction.hpp"

// The portable kernel's fused instructions.
namespace guardbit::emulator::portable {

/// Is every accumulation of the instruction fused, unscaled and within FP32's precision?
bool is_fused_instruction(const MatrixInstruction& instruction);

/// Executes [begin, end) of a batch of a fused instruction.
void run_fused(const MatrixInstruction& instruction, const MatrixBatch& batch, std::int64_t begin,
               std::int64_t end);

}  // namespace guardbit::emulator::portable
