#include "emulator/operators/layers/depthwise.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "emulator/operators/memory_order.hpp"
#include "emulator/operators/number_view.hpp"
#include "emulator/operators/trees.hpp"

namespace guardbit::emulator::operators {
namespace {

void require_fit(const Tensor& gradient, const Tensor& input, const Tensor& weight) {
  const bool fits = gradient.rank() == 4 && input.rank() == 4 && weight.rank() == 4 &&
                    gradient.type == input.type && weight.type == input.type &&
                    gradient.shape[0] == input.shape[0] && weight.shape[1] == 1 &&
                    gradient.shape[1] == weight.shape[0] && input.shape[1] > 0 &&
                    weight.shape[0] % input.shape[1] == 0 && input.count() > 0;
  if (!fits) throw UnknownShape{"shapes that no depthwise convolution has"};
}

std::size_t place(const Tensor& tensor, std::int64_t n, std::int64_t c, std::int64_t h,
                  std::int64_t w) {
  return static_cast<std::size_t>(
      ((n * tensor.shape[1] + c) * tensor.shape[2] + h) * tensor.shape[3] + w);
}

/// Where a pixel of the image meets the filter's place at `tap`: the output's place, or -1.
std::int64_t output_of(std::int64_t pixel, std::int64_t tap, std::size_t d,
                       const DepthwiseShape& shape, std::int64_t size) {
  const std::int64_t at = pixel + shape.padding[d] - tap * shape.dilation[d];
  if (at < 0 || at % shape.stride[d] != 0 || at / shape.stride[d] >= size) return -1;
  return at / shape.stride[d];
}

/// The image's place that an output's place meets at `tap`, or -1.
std::int64_t input_of(std::int64_t output, std::int64_t tap, std::size_t d,
                      const DepthwiseShape& shape, std::int64_t size) {
  const std::int64_t at = output * shape.stride[d] - shape.padding[d] + tap * shape.dilation[d];
  return at < 0 || at >= size ? -1 : at;
}

}  // namespace

Tensor depthwise_data_gradient(const Tensor& gradient, const Tensor& input, const Tensor& weight,
                               const DepthwiseShape& shape, DepthwiseKernel kernel) {
  require_fit(gradient, input, weight);
  const NumberView gradients(gradient), weights(weight);
  const std::int64_t multiplier = weight.shape[0] / input.shape[1];
  const std::int64_t columns = weight.shape[3], taps = weight.shape[2] * columns;
  const bool descends = kernel == DepthwiseKernel::cudnn;
  std::vector<float> results(static_cast<std::size_t>(input.count()));
  std::size_t i = 0;
  for (std::int64_t n = 0; n < input.shape[0]; ++n) {
    for (std::int64_t c = 0; c < input.shape[1]; ++c) {
      for (std::int64_t h = 0; h < input.shape[2]; ++h) {
        for (std::int64_t w = 0; w < input.shape[3]; ++w, ++i) {
          for (std::int64_t m = 0; m < multiplier; ++m) {
            for (std::int64_t t = 0; t < taps; ++t) {
              const std::int64_t tap = descends ? taps - 1 - t : t;
              const std::int64_t p = output_of(h, tap / columns, 0, shape, gradient.shape[2]);
              const std::int64_t q = output_of(w, tap % columns, 1, shape, gradient.shape[3]);
              if (p < 0 || q < 0) continue;
              const std::int64_t o = c * multiplier + m;
              results[i] = std::fma(weights[static_cast<std::size_t>(o * taps + tap)],
                                    gradients[place(gradient, n, o, p, q)], results[i]);
            }
          }
        }
      }
    }
  }
  return tensor_of_numbers(input.type, input.shape, dense_stride_like(input), results);
}

Tensor depthwise_weight_gradient(const Tensor& gradient, const Tensor& input, const Tensor& weight,
                                 const DepthwiseShape& shape, DepthwiseKernel kernel) {
  require_fit(gradient, input, weight);
  const NumberView gradients(gradient), numbers(input);
  const std::int64_t multiplier = weight.shape[0] / input.shape[1];
  const std::int64_t columns = weight.shape[3], taps = weight.shape[2] * columns;
  const std::int64_t pixels = gradient.shape[2] * gradient.shape[3];
  constexpr std::int64_t most_warps = 8;
  const auto lanes = static_cast<std::int64_t>(warp_lanes);
  const bool is_native = kernel == DepthwiseKernel::native;
  const std::int64_t warps = is_native ? std::min(input.shape[0], most_warps) : 1;
  std::vector<float> results(static_cast<std::size_t>(weight.count()));
  for (std::size_t i = 0; i < results.size(); ++i) {
    const std::int64_t o = static_cast<std::int64_t>(i) / taps,
                       tap = static_cast<std::int64_t>(i) % taps;
    std::vector<float> threads(static_cast<std::size_t>(warps * lanes));
    for (std::int64_t n = 0; n < input.shape[0]; ++n) {
      for (std::int64_t at = 0; at < pixels; ++at) {
        const std::int64_t p = at / gradient.shape[3], q = at % gradient.shape[3];
        const std::int64_t h = input_of(p, tap / columns, 0, shape, input.shape[2]);
        const std::int64_t w = input_of(q, tap % columns, 1, shape, input.shape[3]);
        if (h < 0 || w < 0) continue;
        const std::int64_t thread =
            is_native ? n % warps * lanes + at % lanes : (n * pixels + at) % lanes;
        float& sum = threads[static_cast<std::size_t>(thread)];
        sum = std::fma(numbers[place(input, n, o / multiplier, h, w)],
                       gradients[place(gradient, n, o, p, q)], sum);
      }
    }
    results[i] = is_native ? sum_of_two_stages(threads) : halved_sum(threads);
  }
  return tensor_of_numbers(weight.type, weight.shape, dense_stride_like(weight), results);
}

}  // namespace guardbit::emulator::operators
