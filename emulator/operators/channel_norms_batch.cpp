#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <functional>
#include <vector>

#include "emulator/operators/channel_layout.hpp"
#include "emulator/operators/channel_norms.hpp"
#include "emulator/operators/kernels/array_math.hpp"
#include "emulator/operators/memory_order.hpp"
#include "emulator/operators/reduction.hpp"
#include "emulator/operators/trees.hpp"

// PyTorch's own batch_norm.
namespace guardbit::emulator::operators {
namespace {

constexpr std::size_t block_threads = 512;

/// Threads of a block beside each other, for images of so many elements.
std::size_t threads_along(std::int64_t image) {
  for (const std::size_t threads : {32U, 64U, 128U, 256U}) {
    if (image <= static_cast<std::int64_t>(threads)) return threads;
  }
  return block_threads;
}

/// The threads of a block that go through a channel's images: some beside each other take an image.
struct ThreadsOfImages {
  std::size_t along = 1, across = 1;
};
ThreadsOfImages threads_of_images(const ChannelLayout& layout) {
  const std::size_t along = threads_along(layout.image);
  return {along, block_threads / along};
}
/// Those of the kernel that does nothing but the sums of a gradient.
ThreadsOfImages threads_of_sums(const ChannelLayout& layout) {
  const std::size_t images = std::bit_floor(static_cast<std::size_t>(layout.batch));
  const std::size_t across = std::min(images, block_threads / warp_lanes);
  return {std::min(threads_along(layout.image), block_threads / across), across};
}

/// Calls body(thread, index) for a channel's elements in each thread's order: images in turn.
template <class Body>
void for_each_of_images(const ChannelLayout& layout, ThreadsOfImages threads, const Body& body) {
  const auto [along, across] = threads;
  for (std::int64_t n = 0; n < layout.batch; ++n) {
    const std::size_t row = static_cast<std::size_t>(n) % across * along;
    for (std::int64_t i = 0; i < layout.image; ++i)
      body(row + static_cast<std::size_t>(i) % along,
           static_cast<std::size_t>(n * layout.image + i));
  }
}

Moments merged_images(Moments a, Moments b) {
  const auto share = static_cast<float>(1.0 / double{std::max(1.0F, a.count + b.count)});
  const float delta = a.mean - b.mean;
  return {std::fma(a.count, a.mean, b.count * b.mean) * share,
          a.squares + std::fma(((delta * delta) * a.count) * b.count, share, b.squares),
          a.count + b.count};
}

Moments moments_of_images(const ChannelLayout& layout, std::span<const float> channel) {
  std::vector<Moments> all(block_threads);
  for_each_of_images(layout, threads_of_images(layout), [&](std::size_t t, std::size_t i) {
    const float count = all[t].count + 1, delta = channel[i] - all[t].mean;
    const float mean = all[t].mean + delta / count;
    all[t] = {mean, std::fma(delta, channel[i] - mean, all[t].squares), count};
  });
  std::vector<Moments> warps(warp_lanes);
  for (std::size_t w = 0; w < block_threads / warp_lanes; ++w)
    warps[w] = paired(std::span(all).subspan(w * warp_lanes, warp_lanes), merged_images);
  return paired(std::span(warps), merged_images);
}

/// How the pixels of a channel are shared where channels lie together.
struct PixelShape {
  std::size_t rows = 1, blocks = 1;

  explicit PixelShape(const ChannelLayout& layout) {
    const auto floor = [](std::size_t n) { return std::bit_floor(std::max<std::size_t>(n, 1)); };
    const auto pixels = static_cast<std::size_t>(layout.per_channel());
    const auto channels = static_cast<std::size_t>(layout.channels);
    std::size_t beside = std::min<std::size_t>(floor(channels), 32);
    rows = std::min(floor((pixels + 15) / 16), block_threads / beside);
    if (beside * rows != block_threads) beside = std::min(floor(channels), block_threads / rows);
    blocks = std::min<std::size_t>((pixels + rows * 16 - 1) / (rows * 16), 128);
    if (blocks < 8) blocks = 1;
  }
  std::size_t threads() const { return rows * blocks; }
};
constexpr std::size_t pixel_accumulators = 4;

/// The counts' products fused into the mean's sum: of the second part, or of the first.
Moments merged_accumulators(Moments a, Moments b) {
  const float share = 1.0F / std::max(1.0F, a.count + b.count), delta = a.mean - b.mean;
  return {share * std::fma(b.count, b.mean, a.count * a.mean),
          a.squares + std::fma(((delta * delta) * b.count) * a.count, share, b.squares),
          a.count + b.count};
}
Moments merged_rows(Moments a, Moments b) {
  const float share = 1.0F / std::max(1.0F, a.count + b.count), delta = a.mean - b.mean;
  return {share * std::fma(a.count, a.mean, b.count * b.mean),
          a.squares + std::fma(((delta * delta) * b.count) * a.count, share, b.squares),
          a.count + b.count};
}

/// A block's rows take the accumulators of each thread, then one another; the rows of the last
/// block take what the blocks have, and one another. `slots` has the accumulators of all threads,
/// the first one of each first.
template <class Value, class OfAccumulators, class OfRows>
Value over_pixels(const PixelShape& shape, const std::vector<Value>& slots,
                  const OfAccumulators& of_accumulators, const OfRows& of_rows) {
  std::vector<Value> blocks;
  for (std::size_t b = 0; b < shape.blocks; ++b) {
    std::vector<Value> rows(shape.rows);
    for (std::size_t y = 0; y < shape.rows; ++y) {
      const std::size_t t = b * shape.rows + y;
      rows[y] = slots[t];
      for (std::size_t k = 1; k < pixel_accumulators; ++k)
        rows[y] = of_accumulators(rows[y], slots[k * shape.threads() + t]);
    }
    blocks.push_back(halved(std::span(rows), of_rows));
  }
  if (blocks.size() == 1) return blocks[0];
  std::vector<Value> rows(shape.rows);
  for (std::size_t b = 0; b < blocks.size(); ++b)
    rows[b % rows.size()] = of_rows(rows[b % rows.size()], blocks[b]);
  return halved(std::span(rows), of_rows);
}

Moments moments_of_pixels(const PixelShape& shape, std::span<const float> channel) {
  std::vector<Moments> slots(shape.threads() * pixel_accumulators);
  for (std::size_t i = 0; i < channel.size(); ++i) {
    Moments& own = slots[i % slots.size()];
    const float count = own.count + 1, delta = channel[i] - own.mean;
    const float mean = std::fma(delta, 1.0F / count, own.mean);
    own = {mean, delta * (channel[i] - mean) + own.squares, count};
  }
  return over_pixels(shape, slots, merged_accumulators, merged_rows);
}

float sum_of_pixels(const PixelShape& shape, const std::vector<float>& slots) {
  const auto sum = std::plus<float>();
  return over_pixels(shape, slots, sum, sum);
}

/// Two stages in which every value that moves between lanes is rounded to the tensor's type.
float sum_through_type(const formats::Format& type, std::span<float> values) {
  return two_stages(values, 0.0F, [&](float a, float b) { return a + rounded_to(type, b); });
}

/// Rows of channels: vectors, or images of one pixel.
bool is_in_rows_of_channels(const Tensor& tensor) {
  return is_contiguous(tensor) && tensor.rank() > 1 && tensor.stride[1] == 1;
}

/// Whether PyTorch takes its kernels for channels that lie together; throws UnknownShape where it
/// leaves the moments to its reductions.
bool are_channels_together(const Tensor& tensor) {
  if (is_contiguous(tensor)) return is_in_rows_of_channels(tensor);
  if (is_contiguous_channels_last(tensor)) return true;
  throw UnknownShape{"batch_norm of a tensor with gaps or another order"};
}

/// The same for gradients, which ask in another way: one channel counts as channels together, too.
bool is_for_channels_together(const Tensor& tensor) {
  return is_contiguous_channels_last(tensor) || is_in_rows_of_channels(tensor);
}

float number_or(const std::vector<float>& numbers, std::size_t index, float absent) {
  return numbers.empty() ? absent : numbers[index];
}

}  // namespace

ChannelNormResult batch_norm(const Tensor& input, const BatchNormArguments& arguments) {
  const ChannelLayout layout(input);
  const bool is_together = arguments.is_training && are_channels_together(input);
  const NumberView numbers(input);
  const std::vector<float> weights = layout.of_channels(arguments.weight);
  const std::vector<float> biases = layout.of_channels(arguments.bias);
  const std::vector<float> old_means = layout.of_channels(arguments.running_mean);
  const std::vector<float> old_variances = layout.of_channels(arguments.running_variance);
  const auto channels = static_cast<std::size_t>(layout.channels);
  const auto epsilon = static_cast<float>(arguments.epsilon);
  const PixelShape shape(layout);
  std::vector<float> results(numbers.size()), means(channels), reciprocals(channels);
  const bool moves = arguments.is_training && !old_means.empty() && !old_variances.empty();
  std::vector<float> moved_means(moves ? channels : 0), moved_variances(moves ? channels : 0);
  const auto share = static_cast<float>(arguments.momentum);
  const auto count = static_cast<double>(layout.per_channel());
  const auto correction = static_cast<float>(count / (count - 1));
  for (std::size_t c = 0; c < channels; ++c) {
    std::vector<float> channel = layout.channel(numbers, static_cast<std::int64_t>(c));
    float variance = 0;
    if (arguments.is_training) {
      const Moments moments =
          is_together ? moments_of_pixels(shape, channel) : moments_of_images(layout, channel);
      means[c] = moments.mean;
      variance = moments.squares / static_cast<float>(layout.per_channel());
      if (moves) {
        moved_means[c] = std::fma(means[c], share, (1.0F - share) * old_means[c]);
        moved_variances[c] =
            std::fma(variance * correction, share, (1.0F - share) * old_variances[c]);
      }
    } else {
      means[c] = number_or(old_means, c, 0);
      variance = number_or(old_variances, c, 1);
    }
    reciprocals[c] = reciprocal_root_of(variance + epsilon);
    for (float& x : channel)
      x = std::fma(number_or(weights, c, 1) * (x - means[c]), reciprocals[c],
                   number_or(biases, c, 0));
    layout.store(channel, static_cast<std::int64_t>(c), results);
  }
  const Dimensions of_channels = {layout.channels};
  std::string plan = is_together ? "channels together, " : "images, ";
  plan += !arguments.is_training ? "running statistics"
          : is_together          ? std::to_string(shape.rows) + " threads and " +
                              std::to_string(shape.blocks) + " blocks a channel"
                        : "512 threads a channel, neighbours first";
  ChannelNormResult all{tensor_of_numbers(input.type, input.shape, input.stride, results),
                        tensor_of_numbers(formats::fp32, of_channels, means),
                        tensor_of_numbers(formats::fp32, of_channels, reciprocals),
                        std::move(plan)};
  if (!moves) return all;
  all.running_mean = tensor_of_numbers(arguments.running_mean->type, of_channels, moved_means);
  all.running_variance =
      tensor_of_numbers(arguments.running_variance->type, of_channels, moved_variances);
  return all;
}

namespace {

/// Whether the moments depend on the input, and which kernel gives its gradient where they do not.
enum class Moment : std::uint8_t { of_input, known, known_beside_sums };

ChannelNormGradients gradients_by(const Tensor& gradient, const Tensor& input,
                                  const std::vector<float>& means,
                                  const std::vector<float>& reciprocals, const Tensor* weight,
                                  bool needs_input, Moment moment) {
  require_shape_of_input(gradient, input);
  const ChannelLayout layout(input);
  const bool is_input_together = is_for_channels_together(input);
  const bool is_together = is_input_together && is_for_channels_together(gradient);
  // Sums by a kernel of their own.
  const bool is_apart = !is_together && (is_input_together || !needs_input);
  const ThreadsOfImages threads = is_apart ? threads_of_sums(layout) : threads_of_images(layout);
  const NumberView gradients(gradient), numbers(input);
  const std::vector<float> weights = layout.of_channels(weight);
  const auto channels = static_cast<std::size_t>(layout.channels);
  const PixelShape shape(layout);
  const float share = 1.0F / static_cast<float>(layout.per_channel());
  std::vector<float> results(numbers.size()), of_weight(channels), of_bias(channels);
  for (std::size_t c = 0; c < channels; ++c) {
    std::vector<float> own = layout.channel(gradients, static_cast<std::int64_t>(c));
    const std::vector<float> channel = layout.channel(numbers, static_cast<std::int64_t>(c));
    const float scale = number_or(weights, c, 1) * reciprocals[c];
    float sum = 0, products = 0;
    if (is_together) {
      std::vector<float> first(shape.threads() * pixel_accumulators), second(first.size());
      for (std::size_t i = 0; i < own.size(); ++i) {
        const std::size_t t = i % first.size();
        first[t] += own[i];
        second[t] = std::fma(own[i], channel[i] - means[c], second[t]);
      }
      sum = sum_of_pixels(shape, first);
      products = sum_of_pixels(shape, second);
    } else {
      std::vector<float> first(block_threads), second(block_threads);
      const bool is_fp32 = input.type == formats::fp32;
      for_each_of_images(layout, threads, [&](std::size_t t, std::size_t i) {
        first[t] += own[i];
        const float x = channel[i] - means[c];
        second[t] = is_fp32 ? std::fma(x, own[i], second[t])
                            : second[t] + rounded_to(input.type, own[i] * x);
      });
      sum = sum_through_type(input.type, first);
      products = sum_through_type(input.type, second);
    }
    if (is_together || is_apart) {
      const float slope = ((reciprocals[c] * reciprocals[c]) * products) * share;
      for (std::size_t i = 0; i < own.size(); ++i)
        own[i] =
            moment == Moment::of_input
                ? std::fma(-(channel[i] - means[c]), slope, std::fma(-sum, share, own[i])) * scale
                : own[i] * number_or(weights, c, 1) * reciprocals[c];
    } else {
      const float of_mean = sum * share;
      const float slope = ((products * share) * reciprocals[c]) * reciprocals[c];
      for (std::size_t i = 0; i < own.size(); ++i)
        own[i] = moment == Moment::of_input
                     ? (std::fma(-slope, channel[i] - means[c], own[i]) - of_mean) * scale
                 : moment == Moment::known ? own[i] * number_or(weights, c, 1) * reciprocals[c]
                                           : own[i] * scale;
    }
    of_weight[c] = products * reciprocals[c];
    of_bias[c] = sum;
    layout.store(own, static_cast<std::int64_t>(c), results);
  }
  const formats::Format& type = weight == nullptr ? input.type : weight->type;
  const Dimensions of_channels = {layout.channels};
  return {tensor_of_numbers(input.type, input.shape, input.stride, results),
          tensor_of_numbers(type, of_channels, of_weight),
          tensor_of_numbers(type, of_channels, of_bias),
          is_together ? "channels together"
          : is_apart  ? std::to_string(threads.across) + " images at a time, sums apart"
                      : "512 threads a channel, two stages"};
}

}  // namespace

ChannelNormGradients batch_norm_gradients(const Tensor& gradient, const Tensor& input,
                                          const Tensor& mean, const Tensor& reciprocal,
                                          const Tensor* weight, bool needs_input) {
  const ChannelLayout layout(input);
  return gradients_by(gradient, input, layout.of_channels(&mean), layout.of_channels(&reciprocal),
                      weight, needs_input, Moment::of_input);
}

ChannelNormGradients batch_norm_gradients_in_inference(const Tensor& gradient, const Tensor& input,
                                                       const Tensor* mean, const Tensor* reciprocal,
                                                       const BatchNormArguments& arguments,
                                                       bool needs_sums) {
  if (arguments.running_mean == nullptr || arguments.running_variance == nullptr)
    throw UnknownShape{"the gradient with running statistics that are not there"};
  // A kernel of its own for the input's gradient takes what the forward call kept.
  const bool is_apart = is_for_channels_together(input) || !needs_sums;
  const ChannelLayout layout(input);
  std::vector<float> means = layout.of_channels(arguments.running_mean);
  std::vector<float> reciprocals = layout.of_channels(arguments.running_variance);
  const auto epsilon = static_cast<float>(arguments.epsilon);
  for (float& x : reciprocals)
    x = is_apart ? reciprocal_root_of(x + epsilon) : 1.0F / std::sqrt(x + epsilon);
  const auto is_kept = [](const Tensor* tensor) {
    return tensor != nullptr && tensor->count() > 0;
  };
  if (is_apart && is_kept(mean)) means = layout.of_channels(mean);
  if (is_apart && is_kept(reciprocal)) reciprocals = layout.of_channels(reciprocal);
  return gradients_by(gradient, input, means, reciprocals, arguments.weight, true,
                      is_apart ? Moment::known : Moment::known_beside_sums);
}

}  // namespace guardbit::emulator::operators
