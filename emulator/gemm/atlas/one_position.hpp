#pragma once

#include <optional>

#include "emulator/gemm/atlas/leaf.hpp"
#include "emulator/gemm/atlas/product_call.hpp"

// Scores of attention for one query (bmm with M = 1, both operands contiguous along K), as a model
// that generates asks for them at each token. Their launches do not tell how lanes share K; results
// of an H200 do (tools/scripts/atlas/record_one_position.py).
namespace guardbit::emulator::atlas {

/// What results told of this very call, or of the calls on all sides of it, if they are of one
/// plan: that is a rule. Nothing: the call is of another kind, or lies outside of what was
/// recorded.
std::optional<Leaf> leaf_of_one_position(const ProductCall& call);

}  // namespace guardbit::emulator::atlas
