#pragma once

#include <array>
#include <cstdint>

#include "emulator/operators/operator_tensor.hpp"

// cuDNN's gradients of weights that threads share in tiles (wgrad2d_shmem_tiling).
namespace guardbit::emulator::operators {

/// How 128 threads share a gradient's pixels: runs of two pixels of a row over four lanes and two
/// rows, or of six over two lanes and four rows.
enum class GradientTiling : std::uint8_t { narrow, wide };

/// `gradient` is [images, outputs, rows, columns], `input` [images, channels, rows, columns],
/// `weight`, for its shape alone, [outputs, channels, rows, columns]; in FP16 or BF16. Sixteen
/// units take every fourth image and every fourth group of rows; in each, eight lanes have a chain
/// of FP32 multiply-adds. A lane's units are added in ascending order; then neighbouring lanes,
/// then the outer and the inner pairs, then these two sums. Found from results and from sums in
/// which two elements cancel (docs/ATLAS.md). UnknownShape where shapes do not fit. `threads`: of
/// the CPU; 0: all.
Tensor tiled_weight_gradient(const Tensor& gradient, const Tensor& input, const Tensor& weight,
                             std::array<std::int64_t, 2> stride,
                             std::array<std::int64_t, 2> padding, GradientTiling tiling,
                             int threads = 0);

}  // namespace guardbit::emulator::operators
