#include "emulator/operators/layers/placed_gradient.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "emulator/operators/memory_order.hpp"
#include "emulator/operators/number_view.hpp"
#include "formats/support/parallel.hpp"

namespace guardbit::emulator::operators {
namespace {

void require_fit(const Tensor& gradient, const Tensor& input, const Tensor& weight,
                 std::array<std::int64_t, 2> stride, std::array<std::int64_t, 2> padding) {
  bool fits = gradient.rank() == 4 && input.rank() == 4 && weight.rank() == 4 &&
              gradient.type == input.type && weight.type == input.type &&
              gradient.shape[0] == input.shape[0] && gradient.shape[1] == weight.shape[0] &&
              input.shape[1] == weight.shape[1];
  for (const std::size_t i : {std::size_t{2}, std::size_t{3}})
    fits = fits && stride.at(i - 2) > 0 &&
           weight.shape[i] <= input.shape[i] + 2 * padding.at(i - 2) &&
           gradient.shape[i] ==
               (input.shape[i] + 2 * padding.at(i - 2) - weight.shape[i]) / stride.at(i - 2) + 1;
  if (!fits) throw UnknownShape{"shapes that no convolution has"};
}

/// One channel of an image's gradient.
class ChannelGradient {
 public:
  ChannelGradient(const Tensor& gradient, const Tensor& input, const Tensor& weight,
                  std::array<std::int64_t, 2> stride, std::array<std::int64_t, 2> padding)
      : maps_(gradient.shape),
        image_(input.shape),
        filter_(weight.shape),
        stride_(stride),
        padding_(padding),
        of_chunk_(static_cast<std::size_t>(image_[2] * image_[3])) {}

  /// Adds what the output's pixels [begin, end) give to `total`. `maps`: of this image.
  void add_chunk(const float* maps, const float* weights, std::int64_t channel, std::int64_t begin,
                 std::int64_t end, float* total) {
    std::ranges::fill(of_chunk_, 0.0F);
    sums_.resize(static_cast<std::size_t>(end - begin));
    for (std::int64_t r = 0; r < filter_[2]; ++r)
      for (std::int64_t s = 0; s < filter_[3]; ++s) {
        chains(maps, weights + (channel * filter_[2] + r) * filter_[3] + s, begin);
        scatter(r, s, begin);
      }
    for (std::size_t i = 0; i < of_chunk_.size(); ++i) total[i] += of_chunk_[i];
  }

 private:
  /// Of each pixel of the chunk the chain over the outputs. `weight`: of the first output.
  void chains(const float* maps, const float* weight, std::int64_t begin) {
    std::ranges::fill(sums_, 0.0F);
    const std::int64_t of_output = image_[1] * filter_[2] * filter_[3];
    const std::int64_t pixels = maps_[2] * maps_[3];
    for (std::int64_t o = 0; o < maps_[1]; ++o) {
      const float factor = weight[o * of_output];
      const float* const row = maps + o * pixels + begin;
      for (std::size_t i = 0; i < sums_.size(); ++i) sums_[i] = std::fma(row[i], factor, sums_[i]);
    }
  }

  void scatter(std::int64_t r, std::int64_t s, std::int64_t begin) {
    for (std::size_t i = 0; i < sums_.size(); ++i) {
      const std::int64_t pixel = begin + static_cast<std::int64_t>(i);
      const std::int64_t row = pixel / maps_[3] * stride_[0] - padding_[0] + r;
      const std::int64_t column = pixel % maps_[3] * stride_[1] - padding_[1] + s;
      if (row < 0 || row >= image_[2] || column < 0 || column >= image_[3]) continue;
      of_chunk_[static_cast<std::size_t>(row * image_[3] + column)] += sums_[i];
    }
  }

  const Dimensions &maps_, &image_, &filter_;
  std::array<std::int64_t, 2> stride_, padding_;
  std::vector<float> of_chunk_, sums_;
};

}  // namespace

Tensor placed_data_gradient(const Tensor& gradient, const Tensor& input, const Tensor& weight,
                            std::array<std::int64_t, 2> stride, std::array<std::int64_t, 2> padding,
                            std::int64_t chunk, int threads) {
  require_fit(gradient, input, weight, stride, padding);
  const NumberView maps(gradient), weights(weight);
  const std::int64_t pixels = gradient.shape[2] * gradient.shape[3];
  const std::int64_t of_image = gradient.shape[1] * pixels;
  const std::int64_t of_channel = input.shape[2] * input.shape[3];
  std::vector<float> results(static_cast<std::size_t>(input.count()));
  const auto planes = static_cast<std::size_t>(input.shape[0] * input.shape[1]);
  formats::parallel_for(planes, 1, threads, [&](std::size_t first, std::size_t last) {
    ChannelGradient own(gradient, input, weight, stride, padding);
    for (std::size_t i = first; i < last; ++i) {
      const auto at = static_cast<std::int64_t>(i);
      for (std::int64_t begin = 0; begin < pixels; begin += chunk)
        own.add_chunk(maps.data() + at / input.shape[1] * of_image, weights.data(),
                      at % input.shape[1], begin, std::min(pixels, begin + chunk),
                      results.data() + at * of_channel);
    }
  });
  return tensor_of_numbers(input.type, input.shape, dense_stride_like(input), results);
}

}  // namespace guardbit::emulator::operators
