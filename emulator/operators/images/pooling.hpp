#pragma once

#include <optional>

#include "emulator/operators/images/images.hpp"

// Pooling of images and volumes by windows.
namespace guardbit::emulator::operators {

struct PoolingWindow {
  /// of space: 2 or 3
  int dimensions = 2;
  Space size = {}, stride = {}, padding = {0, 0, 0}, dilation = {};
  bool rounds_up = false;
};
struct MaxPooled {
  Tensor numbers, indices;
};
/// Of images. A window of infinities below zero gives its first place; where channels lie together
/// the first one of the image.
MaxPooled max_pool(const Tensor& input, const PoolingWindow& window);
/// An element that is the greatest of several windows gets the FP32 sum of their gradients, row by
/// row of windows: so both kernels of PyTorch's source add, that for channels together, too. There
/// the gradient of a single window is copied: a zero keeps its sign.
Tensor max_pool_gradient(const Tensor& gradient, const Tensor& input, const Tensor& indices,
                         const PoolingWindow& window);

struct AverageRule {
  bool counts_padding = true;
  std::optional<std::int64_t> divisor;
};
Tensor average_pool(const Tensor& input, const PoolingWindow& window, const AverageRule& rule);
/// Nothing where an element of a volume is in more than two windows: atomics add in no fixed order.
std::optional<Tensor> average_pool_gradient(const Tensor& gradient, const Tensor& input,
                                            const PoolingWindow& window, const AverageRule& rule);

/// Windows that lie side by side as columns, added up to the images that they are cut of.
Tensor fold_windows(const Tensor& columns, const Space& size, const PoolingWindow& window);

}  // namespace guardbit::emulator::operators
