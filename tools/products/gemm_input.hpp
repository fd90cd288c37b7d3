#pragma once

#include <optional>
#include <string>

#include "emulator/gemm/problem.hpp"

// The operands of a product, wherever they come from.
namespace guardbit::tools {

/// An operand, and what errors call it: "--c FILE", or "c".
struct Operand {
  emulator::CodeMatrix matrix;
  std::string where;
};

/// A [M, K] and B [K, N], C [M, N], a bias of N, scales of rows or columns or of blocks of K.
struct ProductOperands {
  Operand a, b;
  std::optional<Operand> c, bias, scale_a, scale_b;
  /// A is 2:4 sparse, stored with its zeros
  bool sparse = false;
  /// A came with three dimensions
  bool batched = false;
};

struct GemmInput {
  emulator::GemmProblem problem;
  bool batched = false;
};

/// The problem that they are; formats::Error where they do not fit each other.
GemmInput gemm_input(ProductOperands operands);

}  // namespace guardbit::tools
