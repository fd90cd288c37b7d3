#pragma once

#include "emulator/engine/kernels/fused/fused_arithmetic.hpp"
#include "emulator/engine/matrix_product.hpp"

namespace guardbit::emulator::fused {

/// The tiles of an instruction set.
struct Kernels {
  bool (*accepts)(const FusedInstruction& instruction) = nullptr;
  /// A sparse A is spread out over K.
  void (*multiply)(const FusedInstruction& instruction, const MatrixProduct& product,
                   int threads) = nullptr;
  /// Can it be? Not where B has an infinity or a NaN that the zeros between A's stored values would
  /// meet, nor where two values of a group claim one place.
  bool (*can_spread)(const FusedInstruction& instruction, const MatrixProduct& product) = nullptr;
};

/// Null where the CPU has not the instructions.
Kernels kernels_avx512();
Kernels kernels_avx2();
/// Not null: NEON is a part of AArch64.
Kernels kernels_neon();

}  // namespace guardbit::emulator::fused
