#pragma once

#include <cstdint>

#include "emulator/engine/kernels/shared/vector_set.hpp"
#include "emulator/engine/matrix_product.hpp"
#include "emulator/model/batch.hpp"
#include "emulator/model/instruction.hpp"

// Products of instructions that are one chain of fused multiply-adds in FP64 or FP32 (DMMA, AMD's
// FP64 and FP32, the x86 FMA, the TPU's instruction) by the FMA instructions of x86.
namespace guardbit::emulator::chain_gemm {

/// Can this CPU multiply by the instruction?
bool accepts(const MatrixInstruction& instruction, VectorSet set);

/// As `emulator::multiply`; the instruction must be accepted.
void multiply(const MatrixInstruction& instruction, const MatrixProduct& product, int threads,
              VectorSet set);

/// Executes [begin, end) of a batch on the calling thread; the instruction must be accepted.
void run(const MatrixInstruction& instruction, const MatrixBatch& batch, std::int64_t begin,
         std::int64_t end, VectorSet set);

}  // namespace guardbit::emulator::chain_gemm
