#pragma once

#include "emulator/model/instruction.hpp"
#include "tests/emulator/inputs/input_codes.hpp"

/// Where the exponents of one execution's operands lie.
namespace guardbit::tests {

enum class InputFamily {
  raw_bits,
  finite_bits,
  narrow_exponents,  ///< -2 to 0: every term overlaps every other
  wide_exponents,
  cancellation,  ///< c = -(sum of products), a few ulp apart
  subnormals,
  near_overflow,     ///< products and c in the largest binades of the result
  mostly_zero,       ///< seven of ten operands are zeros of either sign
  dominant_product,  ///< one product 2 to 2^40 times the others
  specials,          ///< every kind of NaN, infinities, zeros, extremes
  single_special,    ///< one of them among ordinary numbers
  infinity_times_zero,
  opposite_infinities,
  huge_products,     ///< products past 2^128 that cancel (where the operands reach so far)
  tiny_sum,          ///< products around the grid of a zero c of either sign
  exact_zeros,       ///< every product is a zero
  integer_extremes,  ///< totals at the limits of 32 bits
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
  int scale = 0;  ///< of A and of B
};

Tail tail_of(const Types& t, InputFamily family, Random& random);

}  // namespace guardbit::tests
