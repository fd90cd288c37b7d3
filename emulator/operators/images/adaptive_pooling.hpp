#pragma once

#include <optional>

#include "emulator/operators/images/images.hpp"

// Pooling of images and volumes to a size: each result is of its share of the input.
namespace guardbit::emulator::operators {

/// Sums are divided by rows, then by columns of a share; of volumes by its number of elements. Of
/// images whose channels lie together they are multiplied by the reciprocal of that number, which
/// is of the tensor's type.
Tensor adaptive_average_pool(const Tensor& input, const Space& size, int dimensions);
/// Nothing where an element is in more than two shares and atomics add them, in no fixed order.
std::optional<Tensor> adaptive_average_pool_gradient(const Tensor& gradient, const Tensor& input,
                                                     int dimensions);

/// Each result's gradient goes to the element that was the greatest. Nothing where an element gets
/// more than two and atomics add them.
std::optional<Tensor> adaptive_max_pool_gradient(const Tensor& gradient, const Tensor& input,
                                                 const Tensor& indices, int dimensions);
/// The same of windows of volumes, always by atomics.
std::optional<Tensor> max_pool_volumes_gradient(const Tensor& gradient, const Tensor& input,
                                                const Tensor& indices);

}  // namespace guardbit::emulator::operators
