#pragma once

// From the order of additions to instructions: every list of steps of the model that adds in the
// order of a given tree. fit.hpp then sets the fields of these steps.

#include <vector>

#include "emulator/probe/black_box.hpp"
#include "emulator/probe/sum_tree.hpp"

namespace guardbit::emulator {

/// Instructions with every list of steps that adds in the order of the tree, and with every
/// summation that such nodes allow; the simplest first. If the tree is not observable: one
/// accumulation in blocks of each plausible length. Fields other than summation and terms have
/// their defaults.
std::vector<MatrixInstruction> structures_of(const BlackBox& box, const TreeAnswer& tree);

}  // namespace guardbit::emulator
