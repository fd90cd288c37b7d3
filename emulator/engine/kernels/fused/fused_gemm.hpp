#pragma once

#include "emulator/engine/kernels/shared/width.hpp"
#include "emulator/engine/matrix_product.hpp"

// Fused accumulations by the tiles of fused_tile.hpp, as an engine calls them.
namespace guardbit::emulator::fused_gemm {

/// Instructions of fused accumulations, on a CPU whose registers of that width have kernels.
bool accepts(const MatrixInstruction& instruction, Width width);

/// Executes [begin, end) of a batch of an accepted instruction.
void run(const MatrixInstruction& instruction, const MatrixBatch& batch, std::int64_t begin,
         std::int64_t end, Width width);

/// The product of an accepted instruction.
void multiply(const MatrixInstruction& instruction, const MatrixProduct& product, int threads,
              Width width);

}  // namespace guardbit::emulator::fused_gemm
