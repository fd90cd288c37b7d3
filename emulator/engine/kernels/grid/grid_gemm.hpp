#pragma once

#include <cstdint>

#include "emulator/engine/kernels/shared/vector_set.hpp"
#include "emulator/engine/matrix_product.hpp"
#include "emulator/model/batch.hpp"
#include "emulator/model/instruction.hpp"

// AMD's matrix units: sums on grids and pairwise ones, as tiles of numbers of FP64 in vectors.
namespace guardbit::emulator::grid_gemm {

/// Dense instructions in two stages, on two grids or pairwise, in one step or in steps that follow
/// each other, of formats of at most 19 bits.
bool accepts(const MatrixInstruction& instruction, VectorSet set);

void run(const MatrixInstruction& instruction, const MatrixBatch& batch, std::int64_t begin,
         std::int64_t end, VectorSet set);

void multiply(const MatrixInstruction& instruction, const MatrixProduct& product, int threads,
              VectorSet set);

}  // namespace guardbit::emulator::grid_gemm
