#pragma once

#include <string>
#include <vector>

#include "emulator/model/instruction.hpp"

namespace guardbit::tests {

using emulator::MatrixInstruction;

/// Instructions that compute alike: same types, scales and steps. A page that changes alone leaves
/// its group and becomes an arithmetic of its own.
struct SharedArithmetic {
  /// An instruction with the largest number of products, made dense: `shape.k` counts its stored
  /// products.
  MatrixInstruction instruction;
  std::vector<const MatrixInstruction*> instructions;
};

/// Every distinct arithmetic of the catalogue, in its order.
const std::vector<SharedArithmetic>& arithmetics();

bool same_arithmetic(const MatrixInstruction& x, const MatrixInstruction& y);

/// A kind of 2:4 sparsity, which decides what meets what before any arithmetic.
struct SharedSparsity {
  /// sparse, as the catalogue has it; a measured one where there is one
  MatrixInstruction instruction;
  std::vector<const MatrixInstruction*> instructions;
};
const std::vector<SharedSparsity>& sparsities();

/// "e4m3 x e5m2 + fp32 -> fp32", with the scales where there are any.
std::string types_of(const MatrixInstruction& instruction);

/// The machines and families of the instructions: "sm_90 wgmma, wgmma.sp; sm_100 tcgen05".
std::string machines_of(const std::vector<const MatrixInstruction*>& instructions);

/// A toolkit that compiles the instruction this way.
int toolkit_of(const MatrixInstruction& instruction);

}  // namespace guardbit::tests
