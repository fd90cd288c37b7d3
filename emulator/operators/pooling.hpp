#pragma once

#include <optional>
#include <string>

#include "emulator/operators/operator_tensor.hpp"

// Pooling and interpolation of images: tensors whose last two dimensions are rows and columns.
namespace guardbit::emulator::operators {

struct Pair {
  std::int64_t rows = 1, columns = 1;
};

struct PoolingWindow {
  Pair size, stride, padding, dilation;
  bool rounds_up = false;
};
struct MaxPooled {
  Tensor numbers, indices;
};
MaxPooled max_pool(const Tensor& input, const PoolingWindow& window);
/// An element that is the greatest of several windows gets the FP32 sum of their gradients, row by
/// row of windows: so both kernels of PyTorch's source add, that for channels together, too.
Tensor max_pool_gradient(const Tensor& gradient, const Tensor& input, const Tensor& indices);

struct AverageRule {
  bool counts_padding = true;
  std::optional<std::int64_t> divisor;
};
Tensor average_pool(const Tensor& input, const PoolingWindow& window, const AverageRule& rule);
Tensor average_pool_gradient(const Tensor& gradient, const Tensor& input,
                             const PoolingWindow& window, const AverageRule& rule);

Tensor adaptive_average_pool(const Tensor& input, Pair size);
/// Nothing where windows share elements: atomics add in no fixed order.
std::optional<Tensor> adaptive_average_pool_gradient(const Tensor& gradient, const Tensor& input);

/// Scales are of the result to the input; nothing: by the sizes.
struct Scales {
  std::optional<double> rows, columns;
  /// the nearest of the elements' centres: nearest-exact
  bool takes_centres = false;
};
Tensor upsample_nearest(const Tensor& input, Pair size, const Scales& scales);
Tensor upsample_nearest_gradient(const Tensor& gradient, const Dimensions& input_shape,
                                 const Scales& scales);
/// Of rows of elements: tensors of three dimensions.
Tensor upsample_linear(const Tensor& input, std::int64_t length, bool aligns_corners,
                       const std::optional<double>& scale);
Tensor upsample_bicubic(const Tensor& input, Pair size, bool aligns_corners, const Scales& scales);
/// Each output's gradient goes to the element that was its greatest. Nothing where an element gets
/// more than two: atomics add in no fixed order.
std::optional<Tensor> adaptive_max_pool_gradient(const Tensor& gradient, const Tensor& input,
                                                 const Tensor& indices);
Tensor upsample_bilinear(const Tensor& input, Pair size, bool aligns_corners, const Scales& scales);

}  // namespace guardbit::emulator::operators
