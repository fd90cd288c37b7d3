#pragma once

#include "emulator/model/instruction.hpp"
#include "tests/emulator/inputs/input_codes.hpp"

/// Where the exponents of one execution's operands lie.
namespace guardbit::tests {

enum class InputFamily {
  raw_bits,
  finite_bits,
  /// -2 to 0: every term overlaps every other
  narrow_exponents,
  wide_exponents,
  /// c = -(sum of products), a few ulp apart
  cancellation,
  subnormals,
  /// products and c in the largest binades of the result
  near_overflow,
  /// seven of ten operands are zeros of either sign
  mostly_zero,
  /// one product 2 to 2^40 times the others
  dominant_product,
  /// every kind of NaN, infinities, zeros, extremes
  specials,
  /// one of them among ordinary numbers
  single_special,
  infinity_times_zero,
  opposite_infinities,
  /// products past 2^128 that cancel (where the operands reach so far)
  huge_products,
  /// products around the grid of a zero c of either sign
  tiny_sum,
  /// every product is a zero
  exact_zeros,
  /// totals at the limits of 32 bits
  integer_extremes,
};

/// What decides the operands of a dot product, whatever computes it.
struct Types {
  Format a, b, c, d;
  emulator::BlockScale scale;
  emulator::Sparsity sparsity;
};

/// Exponents that the operands of one execution are drawn around.
struct Ranges {
  int a_low = -2, a_high = 0, b_low = -2, b_high = 0, c_low = -2, c_high = 0, scale = 0;
};

Ranges ranges_of(const Types& t, InputFamily family, Random& random);

/// Exponents of two factors.
struct Split {
  int a = 0, b = 0;
};

/// One product at the result's smallest numbers, tails some bits below it: the last bit that the
/// unit keeps beside a zero addend decides.
struct Tail {
  bool present = false;
  Split head, tail;
  /// of A and of B
  int scale = 0;
};

Tail tail_of(const Types& t, InputFamily family, Random& random);

}  // namespace guardbit::tests
