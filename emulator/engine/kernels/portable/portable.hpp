#pragma once

#include <cstdint>

#include "emulator/model/batch.hpp"
#include "emulator/model/instruction.hpp"

// The portable kernel: fused and integer instructions on any CPU, in loops that a compiler can turn
// into vectors.
namespace guardbit::emulator::portable {

/// Instructions made of fused accumulations without block scales (and the scalar steps between
/// them), and integer instructions.
bool accepts(const MatrixInstruction& instruction);

/// Executes [begin, end) of a batch of an accepted instruction. Operands are decoded once per
/// execution instead of once per output; a block whose exponents leave FP32's range goes to the
/// model.
void run(const MatrixInstruction& instruction, const MatrixBatch& batch, std::int64_t begin,
         std::int64_t end);

}  // namespace guardbit::emulator::portable
