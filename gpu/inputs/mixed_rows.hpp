#pragma once

// Operands of one execution whose rows belong to different families; inputs.hpp makes batches of
// them. Recordings in tests/golden hold them, so what a seed draws must not change; a new kind of
// inputs belongs in generated_inputs.hpp.

#include <span>
#include <string_view>

#include "gpu/inputs/execution.hpp"

namespace guardbit::gpu {

/// How row i of A and of C is made after B is.
struct RowFamily {
  InputFamily family;
  void (*fill)(Execution&, int i);
};

/// One execution that holds many kinds of inputs: columns of B of several kinds, and rows of A and
/// C of as many families.
struct MixedRows {
  std::string_view name;
  void (*make_columns)(Execution&);
  std::span<const RowFamily> rows;
};
MixedRows mixed_floats();
MixedRows mixed_integers();
MixedRows mixed_bits();

}  // namespace guardbit::gpu
