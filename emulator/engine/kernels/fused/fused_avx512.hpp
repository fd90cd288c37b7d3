#pragma once

#include "emulator/engine/matrix_product.hpp"

// Fused accumulations by the tiles of fused_tile.hpp in AVX-512, as an engine calls them.
namespace guardbit::emulator::avx512 {

/// Instructions of fused accumulations, on a CPU with AVX-512 as `cpu::Features::avx512_kernels`
/// says.
bool accepts(const MatrixInstruction& instruction);

/// Executes [begin, end) of a batch of an accepted instruction.
void run(const MatrixInstruction& instruction, const MatrixBatch& batch, std::int64_t begin,
         std::int64_t end);

/// The product of an accepted instruction.
void multiply(const MatrixInstruction& instruction, const MatrixProduct& product, int threads);

}  // namespace guardbit::emulator::avx512
