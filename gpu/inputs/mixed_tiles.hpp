#pragma once

#include <span>
#include <string_view>

#include "gpu/inputs/execution.hpp"

namespace guardbit::gpu {

/// How one row of A and of C is made; B stands already.
struct RowFamily {
  std::string_view name;
  void (*fill)(Execution&, int i);
};

/// One tile that holds many kinds of inputs: columns of B of several kinds, rows of as many
/// families.
struct MixedTiles {
  std::string_view name;
  void (*make_columns)(Execution&);
  std::span<const RowFamily> rows;
};
MixedTiles mixed_floats();
MixedTiles mixed_integers();
MixedTiles mixed_bits();

}  // namespace guardbit::gpu
