#pragma once

#include <cstdint>

#include "emulator/model/batch.hpp"
#include "emulator/model/instruction.hpp"

namespace guardbit::emulator::portable {

/// Is every accumulation of the row fused, unscaled and within FP32's precision?
bool is_fused_row(const MatrixInstruction& row);

/// Executes [begin, end) of a batch of a fused row.
void run_fused(const MatrixInstruction& row, const MatrixBatch& batch, std::int64_t begin,
               std::int64_t end);

}  // namespace guardbit::emulator::portable
