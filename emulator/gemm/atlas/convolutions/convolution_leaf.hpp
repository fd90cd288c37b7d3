#pragma once

#include "emulator/gemm/atlas/convolutions/convolution_order.hpp"

// The recorded launches of convolutions: of the listed ones their own, of others as decision trees
// over what a call says of itself.
namespace guardbit::emulator::atlas {

ConvolutionLeaf leaf_of(const ConvolutionShape& shape, ConvolutionPass pass);

}  // namespace guardbit::emulator::atlas
