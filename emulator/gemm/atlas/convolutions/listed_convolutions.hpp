#pragma once

#include <optional>

#include "emulator/gemm/atlas/convolutions/convolution_order.hpp"

// Convolutions as small networks have them (tools/scripts/atlas/convolution_lists.py): of each
// cuDNN was asked on the GPU which engine it takes, and what kernels these engines are was
// recorded.
namespace guardbit::emulator::atlas {

/// What was recorded of this very call. Its form is unknown where the sums are added by atomics, so
/// that a GPU itself gives other bits each time. Nothing: it is not listed, or which kernel the
/// engine launches is not known.
std::optional<ConvolutionLeaf> listed_leaf(const ConvolutionShape& shape, ConvolutionPass pass);

}  // namespace guardbit::emulator::atlas
