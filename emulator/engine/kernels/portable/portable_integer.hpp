#pragma once

#include <cstdint>

#include "emulator/model/batch.hpp"
#include "emulator/model/instruction.hpp"

namespace guardbit::emulator::portable {

/// Does the row sum integers of at most 8 bits into 32?
bool is_integer_row(const MatrixInstruction& row);

/// Executes [begin, end) of a batch of an integer row.
void run_integer(const MatrixInstruction& row, const MatrixBatch& batch, std::int64_t begin,
                 std::int64_t end);

}  // namespace guardbit::emulator::portable
