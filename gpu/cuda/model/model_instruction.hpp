#pragma once

#include <cstdint>

#include "emulator/model/batch.hpp"
#include "emulator/model/instruction.hpp"

// An instruction as the kernels of the models take it.
namespace guardbit::gpu {

/// Columns of an execution that a block of threads takes at once.
inline constexpr int columns_per_tile = 64;

/// How a model kernel takes an instruction: which stored elements belong to which dot step, in
/// order.
struct ModelInstruction {
  emulator::MatrixInstruction instruction{};
  emulator::Modifiers modifiers{};
  /// positions of each step's products
  int begin[5] = {}, count[5] = {};
  /// the stored element at each position
  std::uint8_t order[emulator::max_k] = {};
  /// positions
  int ordered = 0;
  /// step
  int first_dot = 0;
  /// b1: a position holds 32 elements
  bool packed_bits = false;
};

}  // namespace guardbit::gpu
