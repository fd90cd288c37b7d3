#pragma once

#include <cstdint>

#include "emulator/gemm/atlas/product_call.hpp"

// The recorded launches, as decision trees over what a call says of itself.
namespace guardbit::emulator::atlas {

/// How K is cut.
enum class Form : std::uint8_t {
  /// not at all
  chain,
  /// partial sums in FP32, added by a second kernel
  parts,
  /// the blocks of a tile add to D one after the other
  in_place,
  /// partial sums rounded to D's format
  rounded_parts,
  /// tile t of 8 elements goes to part t modulo parts
  round_robin,
  /// runs of tiles of 64
  tiles_of_64,
  /// a kernel whose order of K the atlas does not know
  unknown = 9,
};

/// What multiplies: the usual instruction, a CUDA core, or mma.sync with 8 of K.
enum class Unit : std::uint8_t { usual, simt, k8 };

struct Leaf {
  Form form = Form::unknown;
  Unit unit = Unit::usual;
  int parts = 1;
  /// tile of K whose incomplete part comes first; 0: the last one is incomplete
  int residue = 0;
};

/// The leaf of the tree that a call ends in.
Leaf leaf_of(const ProductCall& call);

}  // namespace guardbit::emulator::atlas
