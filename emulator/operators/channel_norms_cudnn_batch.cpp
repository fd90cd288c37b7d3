#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "emulator/operators/channel_layout.hpp"
#include "emulator/operators/channel_norms.hpp"
#include "emulator/operators/channel_sums.hpp"
#include "emulator/operators/kernels/array_math.hpp"
#include "emulator/operators/memory_order.hpp"

// cuDNN's batch_norm, as a structure that gives its recorded bits.
namespace guardbit::emulator::operators {
namespace {

/// What is normalised: one channel, and its numbers of the weight and the bias.
struct ChannelNumbers {
  std::vector<float> elements;
  float weight = 1, bias = 0;
};

/// By the moments of this batch.
void normalise(ChannelNumbers& channel, ChannelKernel kernel, const ChannelMoments& moments,
               float root) {
  const float scale = channel.weight * root, mean = moments.mean;
  switch (kernel) {
    case ChannelKernel::kept: {
      const float product = mean * scale, shift = channel.bias - product;
      for (float& x : channel.elements) x = std::fma(x, scale, shift);
      return;
    }
    case ChannelKernel::images:
      for (float& x : channel.elements)
        x = std::fma(channel.weight * (x - mean), root, channel.bias);
      return;
    case ChannelKernel::pixels:
      for (float& x : channel.elements) x = std::fma(x - mean, scale, channel.bias);
      return;
  }
}

/// By the running statistics.
void normalise_in_inference(ChannelNumbers& channel, bool is_together, float mean, float root) {
  const float weight = channel.weight, scale = weight * root;
  const float shift = std::fma(-(mean * weight), root, channel.bias);
  for (float& x : channel.elements)
    x = is_together ? std::fma(x, scale, shift) : std::fma(weight * (x - mean), root, channel.bias);
}

/// In inference one pixel or one channel is no reason for the kernel of channels that lie together.
bool is_together_in_inference(const Tensor& input) {
  const ChannelLayout layout(input);
  return says_channels_last(input) && layout.image > 1 && layout.channels > 1;
}

/// The running statistics after a batch.
struct RunningStatistics {
  /// the weight of this batch
  float weight = 0;
  float share = 0, share_but_one = 0, correction = 0;
  ChannelKernel kernel = ChannelKernel::kept;
  /// whether a thread of channels that lie together has 4 of them
  bool is_by_four = false;

  RunningStatistics(const ChannelLayout& layout, double momentum, ChannelKernel by)
      : weight(static_cast<float>(momentum)), kernel(by), is_by_four(layout.channels % 4 == 0) {
    const auto count = static_cast<double>(layout.per_channel());
    share = static_cast<float>(1 / count);
    share_but_one = kernel == ChannelKernel::images
                        ? approximate_reciprocal_of(static_cast<float>(count - 1))
                        : static_cast<float>(1 / (count - 1));
    correction = static_cast<float>(count / (count - 1));
  }
  float mean(float old, float mean) const {
    return kernel == ChannelKernel::pixels && !is_by_four
               ? std::fma(mean, weight, old * (1.0F - weight))
               : std::fma(old, 1.0F - weight, mean * weight);
  }
  float variance(float old, float squares) const {
    switch (kernel) {
      case ChannelKernel::kept:
        return std::fma(squares * share * weight, correction, (1.0F - weight) * old);
      case ChannelKernel::images:
        return std::fma(old, 1.0F - weight, squares * share_but_one * weight);
      case ChannelKernel::pixels:
        return std::fma(old, 1.0F - weight, squares * weight * share_but_one);
    }
    return old;
  }
};

/// The gradient of the input, in place of that of the output.
void turn_gradient(std::span<float> own, std::span<const float> channel, const ChannelSums& sums,
                   const ChannelProducts& of, float mean, float root, float weight) {
  const float share = 1.0F / static_cast<float>(own.size());
  const float scale = weight * root, of_mean = of.sum * share;
  if (sums.kernel() == ChannelKernel::images) {
    const float slope = ((of.products * share) * root) * root;
    for (std::size_t i = 0; i < own.size(); ++i)
      own[i] = weight * (root * (std::fma(-(channel[i] - mean), slope, own[i]) - of_mean));
    return;
  }
  const float slope = ((of.products * root) * root) * share;
  if (sums.kernel() == ChannelKernel::pixels) {
    for (std::size_t i = 0; i < own.size(); ++i)
      own[i] = scale * std::fma(-slope, channel[i] - mean, own[i] - of_mean);
    return;
  }
  const float steep = slope * scale, shift = of_mean * scale;
  const float constant = scale * std::fma(slope, mean, -of_mean);
  for (std::size_t i = 0; i < own.size(); ++i) {
    if (sums.vector() == 1) {
      own[i] = std::fma(-steep, channel[i] - mean, std::fma(scale, own[i], -shift));
    } else {
      const float product = steep * channel[i];
      own[i] = std::fma(scale, own[i], -product) + constant;
    }
  }
}

/// Strides of results: of the two orders the one that the input's strides say.
Dimensions stride_of(const Tensor& input) {
  return says_channels_last(input) ? channels_last_stride(input.shape)
                                   : contiguous_stride(input.shape);
}

ChannelNormResult cudnn_inference(const Tensor& input, const BatchNormArguments& arguments) {
  if (arguments.running_mean == nullptr || arguments.running_variance == nullptr)
    throw UnknownShape{"batch_norm in inference without running statistics"};
  const ChannelLayout layout(input);
  const NumberView numbers(input);
  const std::vector<float> weights = layout.of_channels(arguments.weight);
  const std::vector<float> biases = layout.of_channels(arguments.bias);
  const std::vector<float> means = layout.of_channels(arguments.running_mean);
  const std::vector<float> variances = layout.of_channels(arguments.running_variance);
  const bool is_together = is_together_in_inference(input);
  const auto epsilon = static_cast<float>(arguments.epsilon);
  std::vector<float> results(numbers.size());
  for (std::int64_t c = 0; c < layout.channels; ++c) {
    const auto at = static_cast<std::size_t>(c);
    ChannelNumbers channel{layout.channel(numbers, c), weights[at], biases[at]};
    normalise_in_inference(channel, is_together, means[at],
                           reciprocal_root_of(variances[at] + epsilon));
    layout.store(channel.elements, c, results);
  }
  return {tensor_of_numbers(input.type, input.shape, stride_of(input), results),
          tensor_of_numbers(formats::fp32, {0}, std::vector<float>{}),
          tensor_of_numbers(formats::fp32, {0}, std::vector<float>{}), "running statistics"};
}

}  // namespace

ChannelNormResult cudnn_batch_norm(const Tensor& input, const BatchNormArguments& arguments) {
  if (!arguments.is_training) return cudnn_inference(input, arguments);
  const ChannelLayout layout(input);
  const ChannelSums sums(input, false);
  const NumberView numbers(input);
  const std::vector<float> weights = layout.of_channels(arguments.weight);
  const std::vector<float> biases = layout.of_channels(arguments.bias);
  const std::vector<float> old_means = layout.of_channels(arguments.running_mean);
  const std::vector<float> old_variances = layout.of_channels(arguments.running_variance);
  const bool moves = !old_means.empty() && !old_variances.empty();
  const RunningStatistics running(layout, arguments.momentum, sums.kernel());
  const auto epsilon = static_cast<float>(arguments.epsilon);
  const auto channels = static_cast<std::size_t>(layout.channels);
  const float share = 1.0F / static_cast<float>(layout.per_channel());
  std::vector<float> results(numbers.size()), means(channels), reciprocals(channels);
  std::vector<float> moved_means(moves ? channels : 0), moved_variances(moved_means.size());
  for (std::size_t c = 0; c < channels; ++c) {
    const auto number = static_cast<std::int64_t>(c);
    ChannelNumbers channel{layout.channel(numbers, number), weights[c], biases[c]};
    const ChannelMoments moments = sums.moments(channel.elements);
    const float root = reciprocal_root_of(sums.kernel() == ChannelKernel::kept
                                              ? moments.squares * share + epsilon
                                              : std::fma(moments.squares, share, epsilon));
    means[c] = moments.mean;
    reciprocals[c] = root;
    normalise(channel, sums.kernel(), moments, root);
    layout.store(channel.elements, number, results);
    if (!moves) continue;
    moved_means[c] = running.mean(old_means[c], moments.mean);
    moved_variances[c] = running.variance(old_variances[c], moments.squares);
  }
  const Dimensions of_channels = {layout.channels};
  ChannelNormResult all{
      tensor_of_numbers(input.type, input.shape, stride_of(input), results),
      tensor_of_numbers(formats::fp32, of_channels, means),
      tensor_of_numbers(formats::fp32, of_channels, reciprocals),
      sums.words() + (sums.kernel() == ChannelKernel::kept ? ", two passes" : "")};
  if (!moves) return all;
  all.running_mean = tensor_of_numbers(formats::fp32, of_channels, moved_means);
  all.running_variance = tensor_of_numbers(formats::fp32, of_channels, moved_variances);
  return all;
}

ChannelNormGradients cudnn_batch_norm_gradients(const Tensor& gradient, const Tensor& input,
                                                const Tensor& mean, const Tensor& reciprocal,
                                                const Tensor& weight) {
  require_shape_of_input(gradient, input);
  const ChannelLayout layout(input);
  const ChannelSums sums(input, true);
  const NumberView gradients(gradient), numbers(input);
  const std::vector<float> means = layout.of_channels(&mean);
  const std::vector<float> reciprocals = layout.of_channels(&reciprocal);
  const std::vector<float> weights = layout.of_channels(&weight);
  const auto channels = static_cast<std::size_t>(layout.channels);
  std::vector<float> results(numbers.size()), of_weight(channels), of_bias(channels);
  for (std::size_t c = 0; c < channels; ++c) {
    const auto number = static_cast<std::int64_t>(c);
    std::vector<float> own = layout.channel(gradients, number);
    const std::vector<float> channel = layout.channel(numbers, number);
    const ChannelProducts of = sums.products(own, channel, means[c]);
    of_bias[c] = of.sum;
    of_weight[c] = of.products * reciprocals[c];
    turn_gradient(own, channel, sums, of, means[c], reciprocals[c], weights[c]);
    layout.store(own, number, results);
  }
  const Dimensions of_channels = {layout.channels};
  return {tensor_of_numbers(input.type, input.shape, stride_of(input), results),
          tensor_of_numbers(formats::fp32, of_channels, of_weight),
          tensor_of_numbers(formats::fp32, of_channels, of_bias),
          sums.words() + (sums.kernel() == ChannelKernel::pixels ? "" : ", neighbours first")};
}

}  // namespace guardbit::emulator::operators
