#pragma once

#include <cstdint>
#include <optional>

#include "emulator/gemm/atlas/convolutions/convolution_order.hpp"

// How cuDNN 9's kernels for Hopper cut K of a convolution or a gradient into segments.
namespace guardbit::emulator::atlas {

/// A kernel's tile of D and of K, and how many tiles of D its clusters of thread blocks have.
struct SegmentedKernel {
  std::int64_t rows = 0, columns = 0, depth = 0;
  std::int64_t cluster_rows = 1, cluster_columns = 1;
};

struct Segments {
  /// 1: K is one chain
  std::int64_t count = 1;
  /// Their sums are added by a second kernel, in descending order.
  bool by_second_kernel = false;
};

/// The grids of 2.8 million recorded calls in FP16, BF16 and TF32 have these segments. Nothing
/// where there are more clusters than run at once, or the rule is not known.
std::optional<Segments> segments_of(const SegmentedKernel& kernel, const ConvolutionShape& shape,
                                    ConvolutionPass pass);

}  // namespace guardbit::emulator::atlas
