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

/// What all recorded calls around a call say that is listed but for its images or its side.
struct SurroundedLeaf {
  ConvolutionLeaf leaf;
  /// How many further numbers of images, and sides, in each direction say the same.
  std::size_t steps = 0;
  bool is_between_images = false, is_between_sides = false;
};

/// Nothing: the calls beside it say different things or nothing.
std::optional<SurroundedLeaf> leaf_between_listed(const ConvolutionShape& shape,
                                                  ConvolutionPass pass);

}  // namespace guardbit::emulator::atlas
