#pragma once

#include <array>
#include <cstdint>

#include "emulator/operators/operator_tensor.hpp"

// cuDNN's gradients of weights by Winograd's transforms (winograd_nonfused).
namespace guardbit::emulator::operators {

/// The gradient of filters of 3 x 3 with stride 1, as F(3 x 3, 4 x 4) gives it: pieces of 6 x 6
/// pixels of `input` [images, channels, rows, columns] and of 4 x 4 of `gradient` [images, outputs,
/// rows, columns] are transformed in FP32, columns first; of each of the 36 places the products of
/// all pieces are one chain of FP32 multiply-adds, image by image; their transform is rounded to
/// the type of `weight`, which counts for its type and shape alone. Found from what the kernels
/// left in their workspace (docs/ATLAS.md). UnknownShape where shapes do not fit. `threads`: of
/// the CPU; 0: all.
Tensor transformed_weight_gradient(const Tensor& gradient, const Tensor& input,
                                   const Tensor& weight, std::array<std::int64_t, 2> padding,
                                   int threads = 0);

}  // namespace guardbit::emulator::operators
