#pragma once

// What the generated operands of an instruction depend on: shape, formats, sparsity, and the
// exponents at which its arithmetic cuts or rounds. Computed once from the instruction and its
// model.

#include <cstdint>

#include "emulator/inputs/input_draw.hpp"
#include "emulator/inputs/input_families.hpp"
#include "emulator/model/instruction.hpp"
#include "gpu/operands/tensor_core_instruction.hpp"

namespace guardbit::gpu {

/// Families, their names and the draws of single elements.
using namespace emulator::inputs;

InputKind input_kind(const TensorCoreInstruction& instruction);

/// What the inputs of an instruction depend on: its shape, its words, and the places of its
/// arithmetic where something is cut, rounded or lost, which directed inputs are aimed at. Plain
/// data, handed to kernels by value.
struct InputShape {
  InputKind kind = InputKind::floating;
  OperandWords a, b, c, d, scale;
  /// of a row of A and a column of B; 0 without block scales
  int scales = 0;
  int m = 0, n = 0, k = 0, stored_k = 0;
  /// that number the stored values of a row
  int stored_k_bits = 0;

  // Sparsity: as SparseGroup. The group number of a stored value s is s >> stored_shift, that of a
  // position k of K is k >> dense_shift.
  bool sparse = false, unordered = false;
  int group_stored = 1, group_positions = 1;
  int stored_shift = 0, dense_shift = 0;
  /// C is +0
  bool ignore_c = false;
  /// the products are subtracted
  bool negated = false;

  // Arithmetic of the first accumulation; of a chain of roundings, what corresponds.
  /// Two accumulations of the instruction differ in this bit of s, which says which of them takes
  /// a product: the border between two blocks, or how the compiler partitions K (NUMERICS 1.5). -1
  /// where all products are accumulated together.
  int group_bit = -1;
  /// F: bits kept below the largest exponent
  int kept_bits = 0;
  /// fraction bits of the accumulation's result
  int result_bits = 0;
  /// fraction bits of D
  int final_bits = 0;
  /// e0: exponent of a zero addend
  int zero_exponent = 0;
  int lowest_product = 0, highest_product = 0;
};

/// The shape of the inputs of `instruction`, whose arithmetic is `model`.
InputShape input_shape(const TensorCoreInstruction& instruction,
                       const emulator::MatrixInstruction& model);

/// The same with the model looked up in the catalogue.
InputShape input_shape(const TensorCoreInstruction& instruction);

}  // namespace guardbit::gpu
