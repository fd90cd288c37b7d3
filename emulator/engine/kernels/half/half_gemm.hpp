#pragma once

#include <cstdint>

#include "emulator/engine/matrix_product.hpp"
#include "emulator/model/batch.hpp"
#include "emulator/model/instruction.hpp"

// Products of the FP16 instructions with FP32 sums (Volta to Blackwell) in AVX2's registers: the
// method of fused_tile.hpp, whose FP64 lanes this has four of.
namespace guardbit::emulator::half_gemm {

/// Dense instructions of blocks of at most 16 products, on a CPU with AVX2, FMA and F16C.
bool accepts(const MatrixInstruction& instruction);

/// As `emulator::multiply`; the instruction must be accepted.
void multiply(const MatrixInstruction& instruction, const MatrixProduct& product, int threads);

/// Executes [begin, end) of a batch on the calling thread; the instruction must be accepted.
void run(const MatrixInstruction& instruction, const MatrixBatch& batch, std::int64_t begin,
         std::int64_t end);

}  // namespace guardbit::emulator::half_gemm
