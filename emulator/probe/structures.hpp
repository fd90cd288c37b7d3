#pragma once

#include <vector>

#include "emulator/probe/probe.hpp"

namespace guardbit::emulator {

/// Rows with every list of steps that adds in the order of the tree, their accumulations in each
/// way of summing that such a node allows; the simplest first. Where no tree was seen, one
/// accumulation in blocks of each plausible length. Only the steps' structure means anything.
std::vector<MatrixInstruction> structures_of(const BlackBox& box, const TreeAnswer& tree);

}  // namespace guardbit::emulator
