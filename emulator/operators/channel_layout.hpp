#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "emulator/operators/number_view.hpp"

namespace guardbit::emulator::operators {

inline void require_shape_of_input(const Tensor& gradient, const Tensor& input) {
  if (gradient.shape != input.shape)
    throw UnknownShape{"a gradient of another shape than the input's"};
}

/// A tensor of batch, channels and the elements of an image.
struct ChannelLayout {
  std::int64_t batch = 1, channels = 1, image = 1;

  explicit ChannelLayout(const Tensor& tensor) {
    batch = tensor.shape[0];
    channels = tensor.rank() > 1 ? tensor.shape[1] : 1;
    for (std::size_t d = 2; d < tensor.shape.size(); ++d) image *= tensor.shape[d];
  }
  /// The numbers of a tensor with one for each channel; none of one that is not there.
  std::vector<float> of_channels(const Tensor* tensor) const {
    if (tensor != nullptr && tensor->count() != channels)
      throw UnknownShape{std::to_string(tensor->count()) + " numbers for " +
                         std::to_string(channels) + " channels"};
    return numbers_or_none(tensor);
  }
  std::int64_t per_channel() const { return batch * image; }
  /// The elements of a channel: images of the batch one after another.
  std::vector<float> channel(const NumberView& numbers, std::int64_t c) const {
    std::vector<float> all;
    all.reserve(static_cast<std::size_t>(per_channel()));
    for (std::int64_t n = 0; n < batch; ++n) {
      const auto part = numbers.part(static_cast<std::size_t>((n * channels + c) * image),
                                     static_cast<std::size_t>(image));
      all.insert(all.end(), part.begin(), part.end());
    }
    return all;
  }
  void store(std::span<const float> from, std::int64_t c, std::vector<float>& to) const {
    for (std::int64_t n = 0; n < batch; ++n) {
      for (std::int64_t i = 0; i < image; ++i)
        to[static_cast<std::size_t>((n * channels + c) * image + i)] =
            from[static_cast<std::size_t>(n * image + i)];
    }
  }
};

}  // namespace guardbit::emulator::operators
