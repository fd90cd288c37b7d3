#pragma once

#include <functional>

#include "emulator/engine/matrix_product.hpp"
#include "emulator/model/instruction.hpp"

// Products of sparse instructions by kernels that spread A out over K, with zeros between its
// stored values, where B holds infinities or NaNs that those zeros must not meet.
//
// Every infinity and NaN of B becomes +-1, of its sign. A zero that A does not store then gives a
// zero, and a stored infinity or NaN what it gives beside B's own infinity. Of the outputs with a
// stored value before a special of B ("touched" ones) the products say what they come to, whatever
// else is in the chain: an infinite or NaN sum stays so, +inf and -inf make NaN in any order.
//
//   Claim. Let T be what a touched output comes to beside B's ones. If no sum of finite terms can
//   overflow, the output is NaN if a touched product or T is, or if both infinities are among
//   those; else the infinity of the touched products. Proof. T's own infinities and NaNs come from
//   C and from products with A's, which are the same beside B's specials: the sign of an infinity
//   times +-1 is that of the true product, or that is a NaN by itself. A finite T says nothing.
//
// Where a sum might overflow, T's infinity may be later than the touched product's, which the unit
// would have kept: outputs of which T contradicts the touched products are then executed one by
// one.
namespace guardbit::emulator::sparse_specials {

using Multiply = std::function<void(const MatrixProduct&)>;

/// D of a sparse instruction: `by_tiles` multiplies where B is finite, `exactly` anything, on one
/// thread. A's stored values must stand at places of their own.
void multiply(const MatrixInstruction& instruction, const MatrixProduct& product, int threads,
              const Multiply& by_tiles, const Multiply& exactly);

}  // namespace guardbit::emulator::sparse_specials
