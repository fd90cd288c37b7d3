#pragma once

// What the generated operands of an instruction depend on: shape, formats, sparsity, and the
// exponents at which its arithmetic cuts or rounds. Computed once from the instruction and its
// model.

#include <cstdint>

#include "emulator/model/instruction.hpp"
#include "gpu/operands/register_words.hpp"
#include "gpu/operands/tensor_core_instruction.hpp"

namespace guardbit::gpu {

/// What must be known of an operand's words (register_words.hpp) to make an element.
struct OperandWords {
  /// low bits that the hardware ignores
  int ignored = 0;
  /// below the leading bit, the ignored ones included
  int fraction_bits = 0;
  int bias = 0;
  /// exponent of the smallest subnormal
  int lowest = 0;
  /// exponent of the smallest normal number
  int least_normal = 0;
  /// exponent of the largest finite number
  int highest = 0;
  bool has_infinity = false;
  std::uint64_t mask = 0;
  /// 0 for unsigned integers
  std::uint64_t sign = 0;
  /// all exponent bits: infinity where the format has it
  std::uint64_t infinity = 0;
  /// finite, ignored bits set
  std::uint64_t largest = 0;
};

constexpr OperandWords operand_words(const Format& f) {
  OperandWords x;
  x.ignored = ignored_bits(f);
  x.mask = word_mask(f);
  x.sign = f.has_sign ? sign_bit(f) : 0;
  if (is_integer(f)) {
    x.largest = f.has_sign ? sign_bit(f) - 1 : word_mask(f);
    return x;
  }
  x.fraction_bits = word_fraction_bits(f);
  x.bias = f.bias;
  x.least_normal = min_exponent(f);
  x.lowest = min_exponent(f) - f.fraction_bits;
  x.highest = max_exponent(f);
  x.has_infinity = has_infinity(f);
  x.infinity = infinity_word(f);
  x.largest = largest_finite_word(f);
  return x;
}

/// Which families of inputs an instruction takes (input_families.hpp).
enum class InputKind : std::uint8_t { floating, integer, bits };
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
