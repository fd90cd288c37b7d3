#pragma once

#include <cstdint>

#include "emulator/model/batch.hpp"
#include "emulator/model/instruction.hpp"

// The catalogue's page x86 executed by the CPU's own instructions: silicon, to hold the model
// against.
namespace guardbit::emulator::x86_units {

/// An instruction of x86 whose unit this CPU has.
bool accepts(const MatrixInstruction& instruction);

/// Executes [begin, end) of a batch on this thread. Missing products and outputs of a tile are
/// zeros.
void run(const MatrixInstruction& instruction, const MatrixBatch& batch, std::int64_t begin,
         std::int64_t end);

}  // namespace guardbit::emulator::x86_units
