#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "emulator/operators/channel_layout.hpp"

// How the kernels of cuDNN's batch_norm add up a channel, as structures that give its recorded
// bits.
namespace guardbit::emulator::operators {

/// What a kernel does with a channel, by its size and the order of memory.
enum class ChannelKernel : std::uint8_t {
  /// A block of 512 threads keeps all of it ("singleread").
  kept,
  /// It is more than a block keeps: threads go through images ("kernel_NCHW", "kernel_new").
  images,
  /// Channels lie together: each block has up to 64 channels of some pixels ("nhwc_semiPersist").
  pixels
};

/// The mean and the sum of the squared deviations from it.
struct ChannelMoments {
  float mean = 0, squares = 0;
};
/// Of a gradient: its sum, and that of its products with what a channel differs from its mean.
struct ChannelProducts {
  float sum = 0, products = 0;
};

/// The sums of one kernel for one tensor's channels.
class ChannelSums {
 public:
  /// `is_gradient`: the kernel for gradients, which keeps two tensors.
  ChannelSums(const Tensor& input, bool is_gradient);

  ChannelKernel kernel() const { return kernel_; }
  /// Elements that a thread reads at once, where a block keeps a channel.
  std::size_t vector() const { return vector_; }
  ChannelMoments moments(std::span<const float> channel) const;
  ChannelProducts products(std::span<const float> gradient, std::span<const float> channel,
                           float mean) const;
  /// How the sums are made, for people.
  std::string words() const;

 private:
  ChannelKernel kernel_ = ChannelKernel::kept;
  std::size_t image_ = 1;
  std::size_t vector_ = 1;
  /// of pixels: blocks, lanes of a block, those of a warp, and how many pixels each keeps where
  std::size_t blocks_ = 0, lanes_ = 0, lanes_of_warp_ = 0, in_registers_ = 0, in_memory_ = 0;

  std::size_t thread_of_image(std::size_t i) const;
  float lane_sum(std::span<const float> lanes) const;
  float sum_over_blocks(std::span<const float> values) const;
  std::vector<std::size_t> pixels_of_block(std::size_t block, std::size_t count) const;
  ChannelMoments moments_of_pixels(std::span<const float> channel) const;
  ChannelProducts products_of_pixels(std::span<const float> gradient,
                                     std::span<const float> channel, float mean) const;
};

}  // namespace guardbit::emulator::operators
