#include <cmath>
#include <vector>

#include "emulator/operators/channel_norms.hpp"
#include "emulator/operators/kernels/array_math.hpp"
#include "emulator/operators/number_view.hpp"
#include "emulator/operators/reduction.hpp"
#include "emulator/operators/trees.hpp"

namespace guardbit::emulator::operators {
namespace {

/// Threads of one sum of so many elements.
std::size_t threads_of(std::size_t elements) { return elements < 512 ? 32 : 512; }

float sum_of_threads(std::span<float> values) {
  return values.size() == warp_lanes ? halved_sum(values) : sum_of_two_stages(values);
}

Moments moments_of(std::span<const float> numbers) {
  std::vector<Moments> all(threads_of(numbers.size()));
  for (std::size_t i = 0; i < numbers.size(); ++i)
    all[i % all.size()] = Welford::reduced(all[i % all.size()], numbers[i], 0);
  return all.size() == warp_lanes ? halved(std::span(all), Welford::combined)
                                  : two_stages(std::span(all), Moments{}, Welford::combined);
}

struct Sizes {
  std::size_t batch, channels, image, groups;
  std::size_t in_group() const { return channels / groups; }
};
Sizes group_sizes_of(const Tensor& input, std::int64_t groups) {
  if (groups < 1 || input.rank() < 2 || input.shape[1] % groups != 0)
    throw UnknownShape{"groups that do not divide the channels"};
  Sizes sizes{static_cast<std::size_t>(input.shape[0]), static_cast<std::size_t>(input.shape[1]), 1,
              static_cast<std::size_t>(groups)};
  for (std::size_t d = 2; d < input.shape.size(); ++d)
    sizes.image *= static_cast<std::size_t>(input.shape[d]);
  if (sizes.image == 1) throw UnknownShape{"group_norm of single pixels, a kernel without a model"};
  return sizes;
}

}  // namespace

ChannelNormResult group_norm(const Tensor& input, const Tensor* weight, const Tensor* bias,
                             std::int64_t groups, double epsilon) {
  const Sizes sizes = group_sizes_of(input, groups);
  const NumberView numbers(input);
  const std::vector<float> weights = weight == nullptr ? std::vector<float>{} : numbers_of(*weight);
  const std::vector<float> biases = bias == nullptr ? std::vector<float>{} : numbers_of(*bias);
  const std::size_t rows = sizes.batch * sizes.groups, size = sizes.in_group() * sizes.image;
  const float added = rounded_to(input.type, static_cast<float>(epsilon));
  std::vector<float> results(numbers.size()), means(rows), reciprocals(rows);
  for (std::size_t r = 0; r < rows; ++r) {
    const auto row = numbers.part(r * size, size);
    const Moments moments = moments_of(row);
    const float mean = rounded_to(input.type, moments.mean);
    const float reciprocal =
        rounded_to(input.type, reciprocal_root_of(moments.squares / moments.count + added));
    means[r] = mean;
    reciprocals[r] = reciprocal;
    for (std::size_t i = 0; i < size; ++i) {
      if (weights.empty() && biases.empty()) {
        results[r * size + i] = (row[i] - mean) * reciprocal;
        continue;
      }
      const std::size_t c = r % sizes.groups * sizes.in_group() + i / sizes.image;
      const float scale = weights.empty() ? reciprocal : reciprocal * weights[c];
      const float product = scale * mean;
      const float shift = (biases.empty() ? 0.0F : biases[c]) - product;
      results[r * size + i] = std::fma(scale, row[i], shift);
    }
  }
  const Dimensions of_rows = {input.shape[0], groups};
  return {tensor_of_numbers(input.type, input.shape, results),
          tensor_of_numbers(input.type, of_rows, means),
          tensor_of_numbers(input.type, of_rows, reciprocals),
          std::to_string(threads_of(size)) + " threads a group, moments by Welford"};
}

ChannelNormGradients group_norm_gradients(const Tensor& gradient, const Tensor& input,
                                          const Tensor& mean, const Tensor& reciprocal,
                                          const Tensor* weight, std::int64_t groups) {
  const Sizes sizes = group_sizes_of(input, groups);
  if (sizes.batch > 128)
    throw UnknownShape{"group_norm's gradient of more than 128 images, not measured"};
  const NumberView gradients(gradient), numbers(input), means(mean), reciprocals(reciprocal);
  const std::vector<float> weights = weight == nullptr ? std::vector<float>{} : numbers_of(*weight);
  const std::size_t images = sizes.batch * sizes.channels, size = sizes.image;
  std::vector<float> products(images), sums(images);
  for (std::size_t r = 0; r < images; ++r) {
    std::vector<float> of_products(threads_of(size)), of_sums(threads_of(size));
    for (std::size_t i = 0; i < size; ++i) {
      const std::size_t t = i % of_sums.size();
      of_products[t] = std::fma(gradients[r * size + i], numbers[r * size + i], of_products[t]);
      of_sums[t] += gradients[r * size + i];
    }
    products[r] = sum_of_threads(of_products);
    sums[r] = sum_of_threads(of_sums);
  }
  std::vector<float> results(numbers.size());
  const std::size_t in_group = sizes.in_group();
  for (std::size_t g = 0; g < sizes.batch * sizes.groups; ++g) {
    std::vector<float> first(threads_of(in_group)), second(first.size());
    for (std::size_t i = 0; i < in_group; ++i) {
      const std::size_t r = g * in_group + i, t = i % first.size();
      const float scale = weights.empty() ? 1.0F : weights[r % sizes.channels];
      first[t] = std::fma(products[r], scale, first[t]);
      second[t] = std::fma(sums[r], scale, second[t]);
    }
    const float s1 = sum_of_threads(first), s2 = sum_of_threads(second);
    const float own_mean = means[g], own = reciprocals[g];
    const float share = 1.0F / static_cast<float>(in_group * size);
    const float c2 = (((std::fma(s2, own_mean, -s1) * own) * own) * own) * share;
    const float c3 = std::fma(-c2, own_mean, -((s2 * own) * share));
    for (std::size_t i = 0; i < in_group * size; ++i) {
      const std::size_t at = g * in_group * size + i;
      const float scale =
          weights.empty() ? own : own * weights[(g * in_group + i / size) % sizes.channels];
      results[at] = std::fma(scale, gradients[at], c2 * numbers[at]) + c3;
    }
  }
  std::vector<float> of_weight(sizes.channels), of_bias(sizes.channels);
  for (std::size_t c = 0; c < sizes.channels; ++c) {
    for (std::size_t n = 0; n < sizes.batch; ++n) {
      const std::size_t r = n * sizes.channels + c, g = n * sizes.groups + c / in_group;
      of_weight[c] =
          std::fma(std::fma(-sums[r], means[g], products[r]), reciprocals[g], of_weight[c]);
      of_bias[c] += sums[r];
    }
  }
  const formats::Format& type = weight == nullptr ? input.type : weight->type;
  const Dimensions of_channels = {input.shape[1]};
  return {tensor_of_numbers(input.type, input.shape, results),
          tensor_of_numbers(type, of_channels, of_weight),
          tensor_of_numbers(type, of_channels, of_bias),
          std::to_string(threads_of(size)) + " threads an image, 32 a group, images in order"};
}

}  // namespace guardbit::emulator::operators
