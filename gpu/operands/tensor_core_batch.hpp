#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "gpu/operands/tensor_core_instruction.hpp"

// Batches of tensor-core instructions: operands and results as words.
namespace guardbit::gpu {

/// Index of element (row i, column j) of execution t of a [T, rows, columns] operand.
constexpr std::size_t element_index(int rows, int columns, int t, int i, int j) {
  const auto row =
      static_cast<std::size_t>(t) * static_cast<std::size_t>(rows) + static_cast<std::size_t>(i);
  return row * static_cast<std::size_t>(columns) + static_cast<std::size_t>(j);
}

/// Independent executions of one instruction; every element is a word (register_words.hpp),
/// row-major.
struct Batch {
  int executions = 0;
  /// [T,M,stored K], [T,K,N], [T,M,N], [T,M,N]
  std::vector<std::uint64_t> a, b, c, d;
  /// [T,M,stored K] positions, sparse instructions only
  std::vector<std::uint8_t> e;
  /// [T,M,scales], [T,scales,N], block-scaled only
  std::vector<std::uint64_t> a_scale, b_scale;

  Batch() = default;
  Batch(const TensorCoreInstruction& instruction, int count) : executions(count) {
    const auto size = [&](int rows, int columns) {
      return element_index(rows, columns, count, 0, 0);
    };
    a.resize(size(instruction.m, instruction.stored_k()));
    b.resize(size(instruction.k, instruction.n));
    c.resize(size(instruction.m, instruction.n));
    d.resize(size(instruction.m, instruction.n));
    if (instruction.sparse) e.resize(a.size());
    a_scale.resize(size(instruction.m, instruction.scale.count));
    b_scale.resize(size(instruction.scale.count, instruction.n));
  }
};

}  // namespace guardbit::gpu
