#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "emulator/operators/channel_layout.hpp"
#include "emulator/operators/channel_norms.hpp"
#include "emulator/operators/kernels/array_math.hpp"
#include "emulator/operators/trees.hpp"
#include "formats/support/whole_division.hpp"

// cuDNN's batch_norm, as a structure that gives its recorded bits.
namespace guardbit::emulator::operators {
namespace {

constexpr std::size_t block_threads = 512;

/// Sums of a block's threads. Elements of a channel, images one after another, go to threads as
/// `thread_of(i)` says, each of which adds in that order what `add(sum, i)` adds.
template <class ThreadOf, class Add>
std::vector<float> thread_sums(std::size_t count, const ThreadOf& thread_of, const Add& add) {
  std::vector<float> sums(block_threads);
  for (std::size_t i = 0; i < count; ++i) {
    float& sum = sums[thread_of(i)];
    sum = add(sum, i);
  }
  return sums;
}

/// Thread t takes the vectors t, t + 512, ...
auto by_vectors(std::size_t vector) {
  return [vector](std::size_t i) { return i / vector % block_threads; };
}

/// As the kernel for gradients of many FP32 numbers does it: each 128 threads take every fourth
/// image, and of it every 128th pixel.
auto by_images(std::size_t image) {
  return [image](std::size_t i) {
    constexpr std::size_t pixels_at_once = 128;
    const std::size_t group = i / image % (block_threads / pixels_at_once);
    return group * pixels_at_once + i % image % pixels_at_once;
  };
}

/// Lanes of warps and then warps by descending distances.
float descending_sum(std::vector<float> sums) { return sum_of_two_stages(sums); }
/// Neighbours first.
float ascending_sum(std::vector<float> sums) {
  return paired(std::span(sums), [](float a, float b) { return a + b; });
}

/// FP16 numbers are read in pairs where images have an even number of them.
std::size_t vector_of(const Tensor& input, const ChannelLayout& layout) {
  return input.type == formats::fp16 && layout.image % 2 == 0 ? 2 : 1;
}

std::string words_of_threads(std::size_t vector) {
  return vector == 1 ? "512 threads a channel" : "512 threads a channel, elements in pairs";
}

std::string words_of_pixels(std::size_t pixels) {
  return "blocks of 32 lanes with " + std::to_string(pixels) + " pixels each";
}

/// 32 lanes: those of a warp in pairs, then the even and the odd warps in order.
float lane_sum(std::span<const float> lanes) {
  float even = 0, odd = 0;
  for (std::size_t w = 0; w < lanes.size() / 2; ++w) {
    const float pair = lanes[2 * w] + lanes[2 * w + 1];
    float& sum = w % 2 == 0 ? even : odd;
    sum = w < 2 ? pair : sum + pair;
  }
  return even + odd;
}

/// Where channels lie together: how many pixels each of a block's 32 lanes takes, by the names of
/// cuDNN's kernels.
std::size_t pixels_of_moments(const Tensor& input) { return input.type == formats::fp32 ? 2 : 5; }
constexpr std::size_t pixels_of_gradients = 3;

/// A block has up to 64 channels. As many blocks as are on the GPU at once keep all pixels; of more
/// pixels a kernel reads some again, in an order that is not known.
void require_all_kept(const ChannelLayout& layout, std::size_t pixels) {
  constexpr std::int64_t channels_of_block = 64, most_blocks = 264;
  const auto pixels_of_block = static_cast<std::int64_t>(warp_lanes * pixels);
  if (formats::divided_up(layout.per_channel(), pixels_of_block) *
          formats::divided_up(layout.channels, channels_of_block) >
      most_blocks)
    throw UnknownShape{"cuDNN's batch_norm of more pixels than its blocks keep"};
}

/// Blocks of 32 lanes, each with so many pixels.
struct PixelBlocks {
  std::span<const float> numbers;
  std::size_t in_block;

  std::size_t count() const { return (numbers.size() + in_block - 1) / in_block; }
  std::span<const float> block(std::size_t b) const {
    return numbers.subspan(b * in_block, std::min(in_block, numbers.size() - b * in_block));
  }
};

/// The blocks' values brought together: lane p takes those of blocks p, p + 32, ...
float sum_over_blocks(std::span<const float> values) {
  std::array<float, warp_lanes> lanes{};
  for (std::size_t b = 0; b < values.size(); ++b) lanes[b % warp_lanes] += values[b];
  return lane_sum(lanes);
}

struct PixelMoments {
  float mean = 0, reciprocal = 0;
  /// the sum of the squared deviations
  float squares = 0;
};
PixelMoments moments_of_pixels(std::span<const float> channel, std::size_t pixels, float epsilon) {
  const PixelBlocks blocks{channel, warp_lanes * pixels};
  std::vector<float> firsts, seconds, counts;
  for (std::size_t b = 0; b < blocks.count(); ++b) {
    const auto own = blocks.block(b);
    std::array<float, warp_lanes> means{}, squares{}, seen{}, first{};
    for (std::size_t i = 0; i < own.size(); ++i) {
      const std::size_t p = i % warp_lanes;
      seen[p] += 1;
      const float delta = own[i] - means[p];
      means[p] = std::fma(delta, 1.0F / seen[p], means[p]);
      const float square = delta * (own[i] - means[p]);
      squares[p] += square;
    }
    for (std::size_t p = 0; p < warp_lanes; ++p) first[p] = means[p] * seen[p];
    const auto count = static_cast<float>(own.size());
    const float sum = lane_sum(first);
    for (std::size_t p = 0; p < warp_lanes; ++p) {
      const float delta = std::fma(sum, 1.0F / count, -means[p]);
      squares[p] = std::fma(delta * delta, seen[p], squares[p]);
    }
    firsts.push_back(sum);
    seconds.push_back(lane_sum(squares));
    counts.push_back(count);
  }
  const float share = 1.0F / static_cast<float>(channel.size());
  const float mean = sum_over_blocks(firsts) * share;
  for (std::size_t b = 0; b < seconds.size(); ++b) {
    const float delta = std::fma(-firsts[b], 1.0F / counts[b], mean);
    seconds[b] = std::fma(delta * delta, counts[b], seconds[b]);
  }
  const float squares = sum_over_blocks(seconds);
  return {mean, reciprocal_root_of(std::fma(squares, share, epsilon)), squares};
}

struct PixelGradients {
  float sum = 0, products = 0;
};
PixelGradients gradients_of_pixels(std::span<const float> gradient, std::span<const float> channel,
                                   float mean, std::size_t pixels) {
  const PixelBlocks blocks{gradient, warp_lanes * pixels};
  std::vector<float> sums, products;
  for (std::size_t b = 0; b < blocks.count(); ++b) {
    const auto own = blocks.block(b);
    std::array<float, warp_lanes> first{}, second{}, seen{};
    for (std::size_t i = 0; i < own.size(); ++i) {
      const std::size_t p = i % warp_lanes;
      seen[p] += 1;
      const float share = 1.0F / seen[p], x = channel[b * blocks.in_block + i] - mean;
      first[p] = std::fma(own[i] - first[p], share, first[p]);
      second[p] = std::fma(std::fma(own[i], x, -second[p]), share, second[p]);
    }
    for (std::size_t p = 0; p < warp_lanes; ++p) {
      first[p] *= seen[p];
      second[p] *= seen[p];
    }
    sums.push_back(lane_sum(first));
    products.push_back(lane_sum(second));
  }
  return {sum_over_blocks(sums), sum_over_blocks(products)};
}

/// Images of one pixel count as channel by channel.
ChannelLayout layout_for_cudnn(const Tensor& input) {
  ChannelLayout layout(input);
  if (layout.image == 1) layout.is_channels_last = false;
  return layout;
}

/// Whether the gradient is the kernel's for many numbers, which was recorded of images of 32 x 32
/// pixels. The reciprocal of their number is exact there, so that it does not tell when it is
/// multiplied by.
bool is_of_many(const Tensor& input, const ChannelLayout& layout) {
  constexpr std::int64_t most_elements = 8192, recorded_image = 32 * 32;
  if (layout.is_channels_last || input.type != formats::fp32 ||
      layout.per_channel() <= most_elements)
    return false;
  const auto count = static_cast<std::uint64_t>(layout.per_channel());
  if (layout.image != recorded_image || !std::has_single_bit(count))
    throw UnknownShape{
        "cuDNN's gradient of more than 8192 FP32 elements a channel, but for a power of two of them "
        "in images of 32 x 32"};
  return true;
}

/// FP32 of many numbers: what the sums of a channel make of it. `own`: its gradient.
void fill_gradient_of_many(std::span<float> own, std::span<const float> channel, float mean,
                           float root, float weight, float factor, float of_mean) {
  for (std::size_t i = 0; i < own.size(); ++i)
    own[i] = weight * (root * (std::fma(-(channel[i] - mean), factor, own[i]) - of_mean));
}

void require_known(const ChannelLayout& layout) {
  if (!layout.is_known) throw UnknownShape{"batch_norm of a tensor with gaps or another order"};
}

}  // namespace

bool is_channels_last(const Tensor& input) { return ChannelLayout(input).is_channels_last; }

ChannelNormResult cudnn_batch_norm(const Tensor& input, const BatchNormArguments& arguments) {
  const ChannelLayout layout = layout_for_cudnn(input);
  require_known(layout);
  const std::size_t pixels = pixels_of_moments(input);
  if (layout.is_channels_last && arguments.is_training) require_all_kept(layout, pixels);
  const NumberView numbers(input);
  const std::vector<float> weights = numbers_of(*arguments.weight);
  const std::vector<float> biases = numbers_of(*arguments.bias);
  const auto epsilon = static_cast<float>(arguments.epsilon);
  const auto channels = static_cast<std::size_t>(layout.channels);
  const std::size_t kept = arguments.is_training ? channels : 0;
  std::vector<float> results(numbers.size()), means(kept), reciprocals(kept), squares(kept);
  const std::vector<float> old_means =
      arguments.running_mean == nullptr ? means : numbers_of(*arguments.running_mean);
  const std::vector<float> old_variances =
      arguments.running_variance == nullptr ? means : numbers_of(*arguments.running_variance);
  for (std::size_t c = 0; c < channels; ++c) {
    std::vector<float> channel = layout.channel(numbers, static_cast<std::int64_t>(c));
    const float weight = weights[c], bias = biases[c];
    if (!arguments.is_training) {
      const float mean = old_means[c], root = reciprocal_root_of(old_variances[c] + epsilon);
      const float scale = weight * root;
      for (float& x : channel)
        x = layout.is_channels_last ? std::fma(x, scale, std::fma(-mean, scale, bias))
                                    : std::fma(weight * (x - mean), root, bias);
    } else if (layout.is_channels_last) {
      const auto [mean, root, square_sum] = moments_of_pixels(channel, pixels, epsilon);
      squares[c] = square_sum;
      means[c] = mean;
      reciprocals[c] = root;
      const float scale = weight * root;
      for (float& x : channel) x = std::fma(x - mean, scale, bias);
    } else {
      const float share = 1.0F / static_cast<float>(channel.size());
      const std::size_t vector = vector_of(input, layout);
      const float mean =
          descending_sum(thread_sums(channel.size(), by_vectors(vector),
                                     [&](float sum, std::size_t i) { return sum + channel[i]; })) *
          share;
      squares[c] = descending_sum(
          thread_sums(channel.size(), by_vectors(vector), [&](float sum, std::size_t i) {
            return std::fma(channel[i] - mean, channel[i] - mean, sum);
          }));
      const float root = reciprocal_root_of(squares[c] * share + epsilon);
      means[c] = mean;
      reciprocals[c] = root;
      const float scale = weight * root, product = mean * scale, shift = bias - product;
      for (float& x : channel) x = std::fma(x, scale, shift);
    }
    layout.store(channel, static_cast<std::int64_t>(c), results);
  }
  const Dimensions of_channels = {static_cast<std::int64_t>(kept)};
  ChannelNormResult all{tensor_of_numbers(input.type, input.shape, input.stride, results),
                        tensor_of_numbers(formats::fp32, of_channels, means),
                        tensor_of_numbers(formats::fp32, of_channels, reciprocals),
                        !arguments.is_training ? "running statistics"
                        : layout.is_channels_last
                            ? words_of_pixels(pixels)
                            : words_of_threads(vector_of(input, layout)) + ", two passes"};
  if (!arguments.is_training || arguments.running_mean == nullptr ||
      arguments.running_variance == nullptr)
    return all;
  const auto weight = static_cast<float>(arguments.momentum);
  const auto count = static_cast<double>(layout.per_channel());
  const auto correction = static_cast<float>(count / (count - 1));
  const auto share = static_cast<float>(1 / count);
  const auto share_but_one = static_cast<float>(1 / (count - 1));
  for (std::size_t c = 0; c < channels; ++c) {
    const float old = old_variances[c];
    means[c] = std::fma(old_means[c], 1.0F - weight, means[c] * weight);
    squares[c] = layout.is_channels_last
                     ? std::fma(old, 1.0F - weight, squares[c] * weight * share_but_one)
                     : std::fma(squares[c] * share * weight, correction, (1.0F - weight) * old);
  }
  all.running_mean = tensor_of_numbers(formats::fp32, of_channels, means);
  all.running_variance = tensor_of_numbers(formats::fp32, of_channels, squares);
  return all;
}

ChannelNormGradients cudnn_batch_norm_gradients(const Tensor& gradient, const Tensor& input,
                                                const Tensor& mean, const Tensor& reciprocal,
                                                const Tensor& weight) {
  const ChannelLayout layout = layout_for_cudnn(input);
  require_known(layout);
  const bool many = is_of_many(input, layout);
  if (layout.is_channels_last) require_all_kept(layout, pixels_of_gradients);
  const NumberView gradients(gradient), numbers(input);
  const std::vector<float> means = numbers_of(mean), reciprocals = numbers_of(reciprocal);
  const std::vector<float> weights = numbers_of(weight);
  const auto channels = static_cast<std::size_t>(layout.channels);
  const float share = 1.0F / static_cast<float>(layout.per_channel());
  std::vector<float> results(numbers.size()), of_weight(channels), of_bias(channels);
  for (std::size_t c = 0; c < channels; ++c) {
    std::vector<float> own = layout.channel(gradients, static_cast<std::int64_t>(c));
    const std::vector<float> channel = layout.channel(numbers, static_cast<std::int64_t>(c));
    const float root = reciprocals[c], scale = weights[c] * root;
    if (layout.is_channels_last) {
      const auto [sum, products] = gradients_of_pixels(own, channel, means[c], pixels_of_gradients);
      of_bias[c] = sum;
      of_weight[c] = products * root;
      const float slope = (of_weight[c] * root) * share, of_mean = sum * share;
      for (std::size_t i = 0; i < own.size(); ++i)
        own[i] = scale * std::fma(-slope, channel[i] - means[c], own[i] - of_mean);
    } else {
      const std::size_t vector = vector_of(input, layout);
      const auto block_sum = [&](const auto& add) {
        return ascending_sum(
            many ? thread_sums(own.size(), by_images(static_cast<std::size_t>(layout.image)), add)
                 : thread_sums(own.size(), by_vectors(vector), add));
      };
      of_bias[c] = block_sum([&](float sum, std::size_t i) { return sum + own[i]; });
      of_weight[c] = block_sum([&](float sum, std::size_t i) {
                       return std::fma(own[i], channel[i] - means[c], sum);
                     }) *
                     root;
      const float of_mean = of_bias[c] * share, factor = (of_weight[c] * root) * share;
      if (many) {
        fill_gradient_of_many(own, channel, means[c], root, weights[c], factor, of_mean);
        layout.store(own, static_cast<std::int64_t>(c), results);
        continue;
      }
      const float slope = factor * scale, shift = of_mean * scale;
      const float constant = scale * std::fma(factor, means[c], -of_mean);
      for (std::size_t i = 0; i < own.size(); ++i) {
        if (vector == 1) {
          own[i] = std::fma(-slope, channel[i] - means[c], std::fma(scale, own[i], -shift));
        } else {
          const float product = slope * channel[i];
          own[i] = std::fma(scale, own[i], -product) + constant;
        }
      }
    }
    layout.store(own, static_cast<std::int64_t>(c), results);
  }
  const Dimensions of_channels = {layout.channels};
  return {tensor_of_numbers(input.type, input.shape, input.stride, results),
          tensor_of_numbers(formats::fp32, of_channels, of_weight),
          tensor_of_numbers(formats::fp32, of_channels, of_bias),
          layout.is_channels_last ? words_of_pixels(pixels_of_gradients)
                                  : (many ? "512 threads a channel, 128 to every fourth image"
                                          : words_of_threads(vector_of(input, layout))) +
                                        ", neighbours first"};
}

}  // namespace guardbit::emulator::operators
