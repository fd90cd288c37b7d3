#pragma once

#include <cstdint>

#include "emulator/engine/kernels/shared/vector_set.hpp"
#include "emulator/engine/matrix_product.hpp"
#include "emulator/model/batch.hpp"
#include "emulator/model/instruction.hpp"

// Products of the block-scaled FP4 instructions (NVFP4, MXFP4; dense or sparse), whose groups of 16
// products are summed exactly, by dot products of bytes.
namespace guardbit::emulator::group_gemm {

/// Can this CPU multiply by the instruction?
bool accepts(const MatrixInstruction& instruction, VectorSet set);

/// As `emulator::multiply`; the instruction must be accepted.
void multiply(const MatrixInstruction& instruction, const MatrixProduct& product, int threads,
              VectorSet set);

/// Executes [begin, end) of a batch on the calling thread; the instruction must be accepted.
void run(const MatrixInstruction& instruction, const MatrixBatch& batch, std::int64_t begin,
         std::int64_t end, VectorSet set);

}  // namespace guardbit::emulator::group_gemm
