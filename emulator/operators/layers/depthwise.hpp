#pragma once

#include <array>
#include <cstdint>

#include "emulator/operators/operator_tensor.hpp"

// Gradients of convolutions in as many groups as the input has channels.
namespace guardbit::emulator::operators {

struct DepthwiseShape {
  std::array<std::int64_t, 2> stride{1, 1}, padding{0, 0}, dilation{1, 1};
};

/// Whose kernels: PyTorch's own, which libraries take for images channel by channel, or cuDNN's for
/// channels that lie together.
enum class DepthwiseKernel : std::uint8_t { native, cudnn };

/// `gradient` is [batch, channels * multiplier, rows, columns], `weight` [channels * multiplier, 1,
/// rows, columns], `input` [batch, channels, rows, columns]. UnknownShape where they do not fit.
Tensor depthwise_data_gradient(const Tensor& gradient, const Tensor& input, const Tensor& weight,
                               const DepthwiseShape& shape, DepthwiseKernel kernel);
Tensor depthwise_weight_gradient(const Tensor& gradient, const Tensor& input, const Tensor& weight,
                                 const DepthwiseShape& shape, DepthwiseKernel kernel);

}  // namespace guardbit::emulator::operators
