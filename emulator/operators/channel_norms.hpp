#pragma once

#include <optional>
#include <string>

#include "emulator/operators/operator_tensor.hpp"

// group_norm and batch_norm: moments of groups of channels, or of a channel over the batch.
namespace guardbit::emulator::operators {

struct ChannelNormResult {
  Tensor output, mean, reciprocal;
  std::string plan;
  /// batch_norm in training: the running statistics afterwards, where there are some
  std::optional<Tensor> running_mean = {}, running_variance = {};
};
struct ChannelNormGradients {
  Tensor input;
  /// FP32 or the weight's type; present whether or not they are wanted
  Tensor weight, bias;
  std::string plan;
};

ChannelNormResult group_norm(const Tensor& input, const Tensor* weight, const Tensor* bias,
                             std::int64_t groups, double epsilon);
ChannelNormGradients group_norm_gradients(const Tensor& gradient, const Tensor& input,
                                          const Tensor& mean, const Tensor& reciprocal,
                                          const Tensor* weight, std::int64_t groups);

struct BatchNormArguments {
  const Tensor* weight = nullptr;
  const Tensor* bias = nullptr;
  const Tensor* running_mean = nullptr;
  const Tensor* running_variance = nullptr;
  bool is_training = true;
  double epsilon = 1e-5;
  /// the weight of this batch in the running statistics
  double momentum = 0;
};
/// PyTorch's own kernels; which one adds depends on whether the input's gradient is needed, too.
ChannelNormResult batch_norm(const Tensor& input, const BatchNormArguments& arguments);
ChannelNormGradients batch_norm_gradients(const Tensor& gradient, const Tensor& input,
                                          const Tensor& mean, const Tensor& reciprocal,
                                          const Tensor* weight, bool needs_input = true);
/// The same where the running statistics are the moments; `mean` and `reciprocal` are what the
/// forward call kept, null where it kept nothing. Without sums the weight's and the bias's
/// gradients say nothing.
ChannelNormGradients batch_norm_gradients_in_inference(const Tensor& gradient, const Tensor& input,
                                                       const Tensor* mean, const Tensor* reciprocal,
                                                       const BatchNormArguments& arguments,
                                                       bool needs_sums);
/// cuDNN's, as fitted to what it gave.
ChannelNormResult cudnn_batch_norm(const Tensor& input, const BatchNormArguments& arguments);
ChannelNormGradients cudnn_batch_norm_gradients(const Tensor& gradient, const Tensor& input,
                                                const Tensor& mean, const Tensor& reciprocal,
                                                const Tensor& weight);

}  // namespace guardbit::emulator::operators
