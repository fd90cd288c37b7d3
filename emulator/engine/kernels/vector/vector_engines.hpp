#pragma once

#include <cstdint>

#include "emulator/engine/kernels/shared/vector_set.hpp"
#include "emulator/engine/matrix_product.hpp"

// The engines that use the CPU's vectors: for each instruction the kernel that takes it,
// fused sums (fused_gemm.hpp), sums of exact groups (group_gemm.hpp), integer sums
// (integer_gemm.hpp) or chains of multiply-adds (chain_gemm.hpp).
namespace guardbit::emulator::vector_engines {

/// What an Engine needs.
template <VectorSet set>
struct Kernels {
  static bool accepts(const MatrixInstruction& instruction);
  static void run(const MatrixInstruction& instruction, const MatrixBatch& batch,
                  std::int64_t begin, std::int64_t end);
  static void multiply(const MatrixInstruction& instruction, const MatrixProduct& product,
                       int threads);
};

extern template struct Kernels<VectorSet::avx512>;
extern template struct Kernels<VectorSet::avx2>;
extern template struct Kernels<VectorSet::neon>;

}  // namespace guardbit::emulator::vector_engines
