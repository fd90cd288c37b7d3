#pragma once

#include "emulator/probe/sum_tree.hpp"
#include "tools/plot/drawing.hpp"

namespace guardbit::tools {

/// A tree of additions, the last one on top. Neighbouring products of one addition stand as
/// "first..last", and of a long chain its ends. The tree has leaves.
Drawing sum_tree_picture(const emulator::SumTree& tree, int k);

}  // namespace guardbit::tools
