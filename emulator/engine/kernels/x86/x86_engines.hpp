#pragma once

#include <cstdint>

#include "emulator/engine/matrix_product.hpp"

// The engines that use the wide registers of x86: for each instruction the kernel that takes it,
// fused sums (fused_gemm.hpp), sums of exact groups (group_gemm.hpp), integer sums
// (integer_gemm.hpp) or chains of multiply-adds (chain_gemm.hpp).
namespace guardbit::emulator::x86_engines {

/// What an Engine needs, with the registers of one width.
template <int bits>
struct Kernels {
  static bool accepts(const MatrixInstruction& instruction);
  static void run(const MatrixInstruction& instruction, const MatrixBatch& batch,
                  std::int64_t begin, std::int64_t end);
  static void multiply(const MatrixInstruction& instruction, const MatrixProduct& product,
                       int threads);
};

extern template struct Kernels<512>;
extern template struct Kernels<256>;

}  // namespace guardbit::emulator::x86_engines
