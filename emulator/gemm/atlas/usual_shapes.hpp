#pragma once

#include <optional>

#include "emulator/gemm/atlas/leaf.hpp"
#include "emulator/gemm/atlas/product_call.hpp"

// Products of usual shapes (layers by tokens, attention), each of which was recorded on the GPU
// where the trees only guess (tools/scripts/atlas/record_shapes.py).
namespace guardbit::emulator::atlas {

/// What was recorded of this very call, of which the trees guess `told`; nothing: it has no usual
/// shape, or its launches do not tell a plan. The first call of a region of shapes unpacks it,
/// which takes some milliseconds.
std::optional<Leaf> recorded_leaf(const ProductCall& call, const Leaf& told);

}  // namespace guardbit::emulator::atlas
