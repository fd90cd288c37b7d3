#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "emulator/operators/number_view.hpp"

namespace guardbit::emulator::operators {

/// A tensor of batch, channels and the elements of an image.
struct ChannelLayout {
  std::int64_t batch = 1, channels = 1, image = 1;

  explicit ChannelLayout(const Tensor& tensor) {
    batch = tensor.shape[0];
    channels = tensor.rank() > 1 ? tensor.shape[1] : 1;
    for (std::size_t d = 2; d < tensor.shape.size(); ++d) image *= tensor.shape[d];
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
