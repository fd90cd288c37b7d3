#pragma once

#include "emulator/inputs/input_families.hpp"
#include "emulator/model/instruction.hpp"
#include "tests/emulator/inputs/input_codes.hpp"

/// Where the exponents of one execution's operands lie.
namespace guardbit::tests {

using emulator::inputs::InputFamily;

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
