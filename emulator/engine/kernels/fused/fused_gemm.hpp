#pragma once

#include "emulator/engine/kernels/shared/vector_set.hpp"
#include "emulator/engine/matrix_product.hpp"

// Fused accumulations by the tiles of fused_tile.hpp, as an engine calls them.
namespace guardbit::emulator::fused_gemm {

/// Instructions of fused accumulations, on a CPU that has the instruction set.
bool accepts(const MatrixInstruction& instruction, VectorSet set);

/// Executes [begin, end) of a batch of an accepted instruction.
void run(const MatrixInstruction& instruction, const MatrixBatch& batch, std::int64_t begin,
         std::int64_t end, VectorSet set);

/// The product of an accepted instruction.
void multiply(const MatrixInstruction& instruction, const MatrixProduct& product, int threads,
              VectorSet set);

}  // namespace guardbit::emulator::fused_gemm
