#pragma once

#include "emulator/engine/matrix_product.hpp"

namespace guardbit::emulator::avx512 {

/// Rows of fused accumulations, on a CPU with AVX-512 as `cpu::Features::avx512_kernels` says.
bool accepts(const MatrixInstruction& row);

/// Executes [begin, end) of a batch of an accepted row.
void run(const MatrixInstruction& row, const MatrixBatch& batch, std::int64_t begin,
         std::int64_t end);

/// The product of an accepted row.
void multiply(const MatrixInstruction& row, const MatrixProduct& product, int threads);

}  // namespace guardbit::emulator::avx512
