#include "emulator/operators/channel_sums.hpp"

#include <algorithm>
#include <cmath>

#include "emulator/operators/kernels/array_math.hpp"
#include "emulator/operators/memory_order.hpp"
#include "emulator/operators/trees.hpp"

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

/// Lanes of warps and then warps by descending distances.
float descending_sum(std::vector<float> sums) { return sum_of_two_stages(sums); }
/// Neighbours first.
float ascending_sum(std::vector<float> sums) {
  return paired(std::span(sums), [](float a, float b) { return a + b; });
}

/// Elements of a channel that a block keeps: 112 KiB of FP32, gradients beside as much of the
/// input. FP16 numbers read in pairs are kept as such, and 20 or 14 pairs a thread in registers.
std::size_t most_kept(bool in_pairs, bool is_gradient) {
  constexpr std::size_t in_memory = 28672, pairs_forward = 20, pairs_backward = 14;
  const std::size_t shared_by = is_gradient ? 2 : 1;
  if (!in_pairs) return in_memory / shared_by;
  return 2 *
         (in_memory / shared_by + (is_gradient ? pairs_backward : pairs_forward) * block_threads);
}

/// Threads that share an image where a block goes through images: the block's other threads have
/// the next images at the same time.
std::size_t threads_of_image(std::size_t image) {
  constexpr std::size_t middle = 1024, large = 4096;
  return image < middle ? 32 : image < large ? 128 : block_threads;
}

/// FP16 numbers are read in pairs where images have an even number of them.
std::size_t vector_of(const Tensor& input, std::size_t image) {
  return input.type == formats::fp16 && image % 2 == 0 ? 2 : 1;
}

/// A thread's moments, an element at a time. The reciprocal of the count is the caller's: kernels
/// differ in how they round it.
struct RunningMoments {
  float mean = 0, squares = 0, count = 0;
};

}  // namespace

ChannelSums::ChannelSums(const Tensor& input, bool is_gradient) {
  const ChannelLayout layout(input);
  image_ = static_cast<std::size_t>(layout.image);
  const std::size_t per_channel = image_ * static_cast<std::size_t>(layout.batch);
  if (!says_channels_last(input)) {
    vector_ = vector_of(input, image_);
    if (per_channel > most_kept(vector_ > 1, is_gradient)) kernel_ = ChannelKernel::images;
    return;
  }
  // A block has 16 columns of threads, or 4 for few channels; a thread has 4 channels where their
  // number allows. The names of cuDNN's kernels say so, and how many pixels a thread takes.
  constexpr std::size_t few_channels = 4;
  kernel_ = ChannelKernel::pixels;
  const auto channels = static_cast<std::size_t>(layout.channels);
  const std::size_t columns = channels < few_channels ? 4 : 16;
  lanes_ = block_threads / columns;
  lanes_of_warp_ = warp_lanes / columns;
  in_registers_ = is_gradient ? 3 : input.type == formats::fp32 ? 2 : 5;
  // As many blocks as are on the GPU at once keep all pixels: so many a thread in registers, and
  // where that is not enough the rest in shared memory, as far as it was recorded. What is more is
  // read again, in an order that is not known.
  constexpr std::size_t most_blocks = 264;
  const auto divided_up = [](std::size_t x, std::size_t by) { return (x + by - 1) / by; };
  const std::size_t beside = divided_up(channels, columns * (channels % 4 == 0 ? 4 : 1));
  const std::size_t of_thread =
      std::max(in_registers_,
               divided_up(per_channel, lanes_ * std::max<std::size_t>(1, most_blocks / beside)));
  in_memory_ = of_thread - in_registers_;
  blocks_ = divided_up(per_channel, lanes_ * of_thread);
  const std::size_t most_in_memory = beside > 1 ? (is_gradient ? 0 : 1) : is_gradient ? 3 : 6;
  if (in_memory_ > most_in_memory)
    throw UnknownShape{"cuDNN's batch_norm of more pixels than its blocks keep"};
}

std::size_t ChannelSums::thread_of_image(std::size_t i) const {
  const std::size_t threads = threads_of_image(image_);
  const std::size_t group = i / image_ % (block_threads / threads);
  return group * threads + i % image_ % threads;
}

/// Lanes of a warp, neighbours first; then every second warp in order of 16 columns, or the halves
/// of the warps of 4; last what is left, neighbours first.
float ChannelSums::lane_sum(std::span<const float> lanes) const {
  const auto sum = [](float a, float b) { return a + b; };
  std::vector<float> warps;
  for (std::size_t at = 0; at < lanes.size(); at += lanes_of_warp_) {
    std::vector<float> own(lanes.begin() + static_cast<std::ptrdiff_t>(at),
                           lanes.begin() + static_cast<std::ptrdiff_t>(at + lanes_of_warp_));
    warps.push_back(paired(std::span(own), sum));
  }
  std::vector<float> rest(warps.begin(),
                          warps.begin() + static_cast<std::ptrdiff_t>(lanes_of_warp_));
  for (std::size_t w = lanes_of_warp_; w < warps.size(); ++w) rest[w % lanes_of_warp_] += warps[w];
  return paired(std::span(rest), sum);
}

/// The blocks' values brought together: lane p takes those of every so many blocks from p on.
float ChannelSums::sum_over_blocks(std::span<const float> values) const {
  std::vector<float> lanes(lanes_);
  for (std::size_t b = 0; b < values.size(); ++b) lanes[b % lanes_] += values[b];
  return lane_sum(lanes);
}

/// A block's pixels in order: those in registers, then those in shared memory, which begin where
/// the last block's registers end.
std::vector<std::size_t> ChannelSums::pixels_of_block(std::size_t block, std::size_t count) const {
  std::vector<std::size_t> pixels;
  const auto take = [&](std::size_t begin, std::size_t size) {
    for (std::size_t i = begin; i < std::min(begin + size, count); ++i) pixels.push_back(i);
  };
  const std::size_t in_registers = lanes_ * in_registers_, in_memory = lanes_ * in_memory_;
  take(block * in_registers, in_registers);
  take(blocks_ * in_registers + block * in_memory, in_memory);
  return pixels;
}

ChannelMoments ChannelSums::moments_of_pixels(std::span<const float> channel) const {
  std::vector<float> firsts, seconds, counts;
  for (std::size_t b = 0; b < blocks_; ++b) {
    const std::vector<std::size_t> own = pixels_of_block(b, channel.size());
    std::vector<RunningMoments> lanes(lanes_);
    for (std::size_t i = 0; i < own.size(); ++i) {
      RunningMoments& lane = lanes[i % lanes_];
      lane.count += 1;
      const float x = channel[own[i]], delta = x - lane.mean;
      lane.mean = std::fma(delta, 1.0F / lane.count, lane.mean);
      const float square = delta * (x - lane.mean);
      lane.squares += square;
    }
    std::vector<float> values(lanes_);
    for (std::size_t p = 0; p < lanes_; ++p) values[p] = lanes[p].mean * lanes[p].count;
    const auto count = static_cast<float>(own.size());
    const float sum = lane_sum(values);
    for (std::size_t p = 0; p < lanes_; ++p) {
      const float delta = std::fma(sum, 1.0F / count, -lanes[p].mean);
      values[p] = std::fma(delta * delta, lanes[p].count, lanes[p].squares);
    }
    firsts.push_back(sum);
    seconds.push_back(lane_sum(values));
    counts.push_back(count);
  }
  const float mean = sum_over_blocks(firsts) * (1.0F / static_cast<float>(channel.size()));
  for (std::size_t b = 0; b < seconds.size(); ++b) {
    const float delta = std::fma(-firsts[b], 1.0F / counts[b], mean);
    seconds[b] = std::fma(delta * delta, counts[b], seconds[b]);
  }
  return {mean, sum_over_blocks(seconds)};
}

ChannelProducts ChannelSums::products_of_pixels(std::span<const float> gradient,
                                                std::span<const float> channel, float mean) const {
  std::vector<float> sums, products;
  for (std::size_t b = 0; b < blocks_; ++b) {
    const std::vector<std::size_t> own = pixels_of_block(b, gradient.size());
    std::vector<float> first(lanes_), second(lanes_), seen(lanes_);
    for (std::size_t i = 0; i < own.size(); ++i) {
      const std::size_t p = i % lanes_;
      seen[p] += 1;
      const float share = 1.0F / seen[p], x = channel[own[i]] - mean, g = gradient[own[i]];
      first[p] = std::fma(g - first[p], share, first[p]);
      second[p] = std::fma(std::fma(g, x, -second[p]), share, second[p]);
    }
    for (std::size_t p = 0; p < lanes_; ++p) {
      first[p] *= seen[p];
      second[p] *= seen[p];
    }
    sums.push_back(lane_sum(first));
    products.push_back(lane_sum(second));
  }
  return {sum_over_blocks(sums), sum_over_blocks(products)};
}

ChannelMoments ChannelSums::moments(std::span<const float> channel) const {
  if (kernel_ == ChannelKernel::pixels) return moments_of_pixels(channel);
  const float share = 1.0F / static_cast<float>(channel.size());
  if (kernel_ == ChannelKernel::kept) {
    const auto thread_of = [&](std::size_t i) { return i / vector_ % block_threads; };
    const float mean =
        descending_sum(thread_sums(channel.size(), thread_of,
                                   [&](float sum, std::size_t i) { return sum + channel[i]; })) *
        share;
    return {mean,
            descending_sum(thread_sums(channel.size(), thread_of, [&](float sum, std::size_t i) {
              return std::fma(channel[i] - mean, channel[i] - mean, sum);
            }))};
  }
  std::vector<RunningMoments> threads(block_threads);
  for (std::size_t i = 0; i < channel.size(); ++i) {
    RunningMoments& own = threads[thread_of_image(i)];
    own.count += 1;
    const float delta = channel[i] - own.mean;
    const float reciprocal = approximate_reciprocal_of(own.count);
    own.mean = std::fma(delta, reciprocal, own.mean);
    own.squares = std::fma(delta, channel[i] - own.mean, own.squares);
  }
  std::vector<float> values;
  for (const RunningMoments& own : threads) values.push_back(own.mean * own.count);
  const float mean = descending_sum(std::move(values)) * share;
  values.clear();
  for (const RunningMoments& own : threads) {
    const float delta = mean - own.mean;
    values.push_back(std::fma(delta * delta, own.count, own.squares));
  }
  return {mean, descending_sum(std::move(values))};
}

ChannelProducts ChannelSums::products(std::span<const float> gradient,
                                      std::span<const float> channel, float mean) const {
  if (kernel_ == ChannelKernel::pixels) return products_of_pixels(gradient, channel, mean);
  const auto thread_of = [&](std::size_t i) {
    return kernel_ == ChannelKernel::kept ? i / vector_ % block_threads : thread_of_image(i);
  };
  const auto sum_of = [&](const auto& add) {
    return ascending_sum(thread_sums(gradient.size(), thread_of, add));
  };
  return {sum_of([&](float sum, std::size_t i) { return sum + gradient[i]; }),
          sum_of([&](float sum, std::size_t i) {
            return std::fma(gradient[i], channel[i] - mean, sum);
          })};
}

std::string ChannelSums::words() const {
  if (kernel_ == ChannelKernel::pixels)
    return "blocks of " + std::to_string(lanes_) + " lanes with " +
           std::to_string(in_registers_ + in_memory_) + " pixels each";
  if (kernel_ == ChannelKernel::images)
    return "512 threads a channel, " + std::to_string(threads_of_image(image_)) + " to an image";
  return vector_ == 1 ? "512 threads a channel" : "512 threads a channel, elements in pairs";
}

}  // namespace guardbit::emulator::operators
