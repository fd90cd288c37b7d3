#include <cmath>
#include <type_traits>
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

template <class Number>
Number sum_of_threads(std::vector<Number>& values) {
  return values.size() == warp_lanes ? halved_sum(std::span(values))
                                     : sum_of_two_stages(std::span(values));
}

template <class Number>
MomentsOf<Number> moments_of(std::span<const Number> numbers) {
  using Op = WelfordOf<Number>;
  std::vector<MomentsOf<Number>> all(threads_of(numbers.size()));
  for (std::size_t i = 0; i < numbers.size(); ++i)
    all[i % all.size()] = Op::reduced(all[i % all.size()], numbers[i], 0);
  return all.size() == warp_lanes ? halved(std::span(all), Op::combined)
                                  : two_stages(std::span(all), MomentsOf<Number>{}, Op::combined);
}

template <class Number>
std::vector<Number> all_of(const Tensor* tensor, std::size_t count) {
  if (tensor == nullptr) return {};
  if (tensor->count() != static_cast<std::int64_t>(count))
    throw UnknownShape{std::to_string(tensor->count()) + " numbers for " + std::to_string(count) +
                       " channels or groups"};
  if constexpr (std::is_same_v<Number, double>) {
    return doubles_of(*tensor);
  } else {
    return numbers_of(*tensor);
  }
}

struct Sizes {
  std::size_t batch, channels, image, groups;
  std::size_t in_group() const { return channels / groups; }
  std::size_t rows() const { return batch * groups; }
  /// of a group
  std::size_t row() const { return in_group() * image; }
};
Sizes group_sizes_of(const Tensor& input, std::int64_t groups) {
  if (groups < 1 || input.rank() < 2 || input.shape[1] % groups != 0)
    throw UnknownShape{"groups that do not divide the channels"};
  Sizes sizes{static_cast<std::size_t>(input.shape[0]), static_cast<std::size_t>(input.shape[1]), 1,
              static_cast<std::size_t>(groups)};
  for (std::size_t d = 2; d < input.shape.size(); ++d)
    sizes.image *= static_cast<std::size_t>(input.shape[d]);
  return sizes;
}

/// What a group's kernel knows of it.
template <class Number>
struct Group {
  std::span<const Number> row, weights, biases;
  Number mean, reciprocal;
  /// elements of a channel
  std::size_t image;
};

/// Each channel has a factor and a summand of its own.
template <class Number>
void normalise_images(const Group<Number>& of, Number* results) {
  for (std::size_t i = 0; i < of.row.size(); ++i) {
    if (of.weights.empty() && of.biases.empty()) {
      results[i] = (of.row[i] - of.mean) * of.reciprocal;
      continue;
    }
    const std::size_t c = i / of.image;
    const Number scale = of.weights.empty() ? of.reciprocal : of.reciprocal * of.weights[c];
    const Number product = scale * of.mean;
    const Number shift = (of.biases.empty() ? 0 : of.biases[c]) - product;
    results[i] = std::fma(scale, of.row[i], shift);
  }
}

/// Images of one pixel: a kernel of their own.
template <class Number>
void normalise_pixels(const Group<Number>& of, Number* results) {
  for (std::size_t c = 0; c < of.row.size(); ++c) {
    const Number distance = of.row[c] - of.mean, scaled = distance * of.reciprocal;
    if (of.biases.empty()) {
      results[c] = of.weights.empty() ? scaled : scaled * of.weights[c];
    } else {
      results[c] = of.weights.empty() ? std::fma(distance, of.reciprocal, of.biases[c])
                                      : std::fma(scaled, of.weights[c], of.biases[c]);
    }
  }
}

template <class Number>
ChannelNormResult group_norm_in(const Tensor& input, const Tensor* weight, const Tensor* bias,
                                std::int64_t groups, double epsilon) {
  const Sizes sizes = group_sizes_of(input, groups);
  const ViewOf<Number> numbers(input);
  const auto weights = all_of<Number>(weight, sizes.channels);
  const auto biases = all_of<Number>(bias, sizes.channels);
  const std::size_t rows = sizes.rows(), size = sizes.row(), in_group = sizes.in_group();
  const InType in_type{input.type};
  const Number added = in_type(static_cast<Number>(epsilon));
  std::vector<Number> results(numbers.size()), means(rows), reciprocals(rows);
  for (std::size_t r = 0; r < rows; ++r) {
    const auto row = numbers.part(r * size, size);
    const MomentsOf<Number> moments = moments_of(row);
    means[r] = in_type(moments.mean);
    reciprocals[r] = in_type(reciprocal_root_of(moments.squares / moments.count + added));
    const auto of_group = [&](const std::vector<Number>& all) {
      return all.empty() ? std::span<const Number>{}
                         : std::span(all).subspan(r % sizes.groups * in_group, in_group);
    };
    const Group<Number> group{row,      of_group(weights), of_group(biases),
                              means[r], reciprocals[r],    sizes.image};
    Number* to = results.data() + r * size;
    sizes.image == 1 ? normalise_pixels(group, to) : normalise_images(group, to);
  }
  const Dimensions of_rows = {input.shape[0], groups};
  return {tensor_of_numbers(input.type, input.shape, results),
          tensor_of_numbers(input.type, of_rows, means),
          tensor_of_numbers(input.type, of_rows, reciprocals),
          std::to_string(threads_of(size)) + " threads a group, moments by Welford"};
}

/// Of each image: sums of products of gradient and input, and of the gradient.
template <class Number>
struct ImageSums {
  std::vector<Number> products, sums;
};
template <class Number>
ImageSums<Number> image_sums(const Sizes& sizes, const ViewOf<Number>& gradients,
                             const ViewOf<Number>& numbers) {
  const std::size_t images = sizes.batch * sizes.channels, size = sizes.image;
  ImageSums<Number> all{std::vector<Number>(images), std::vector<Number>(images)};
  std::vector<Number> of_products(threads_of(size)), of_sums(of_products.size());
  for (std::size_t r = 0; r < images; ++r) {
    of_products.assign(of_products.size(), 0);
    of_sums.assign(of_sums.size(), 0);
    for (std::size_t i = 0; i < size; ++i) {
      const std::size_t t = i % of_sums.size();
      of_products[t] = std::fma(gradients[r * size + i], numbers[r * size + i], of_products[t]);
      of_sums[t] += gradients[r * size + i];
    }
    all.products[r] = sum_of_threads(of_products);
    all.sums[r] = sum_of_threads(of_sums);
  }
  return all;
}

template <class Number>
ChannelNormGradients group_norm_gradients_in(const Tensor& gradient, const Tensor& input,
                                             const Tensor& mean, const Tensor& reciprocal,
                                             const Tensor* weight, std::int64_t groups) {
  const Sizes sizes = group_sizes_of(input, groups);
  if (sizes.batch > 128)
    throw UnknownShape{"group_norm's gradient of more than 128 images, not measured"};
  const ViewOf<Number> gradients(gradient), numbers(input);
  const auto means = all_of<Number>(&mean, sizes.rows());
  const auto reciprocals = all_of<Number>(&reciprocal, sizes.rows());
  const auto weights = all_of<Number>(weight, sizes.channels);
  const std::size_t size = sizes.image, in_group = sizes.in_group();
  const bool are_pixels = size == 1;
  const ImageSums<Number> images =
      are_pixels ? ImageSums<Number>{} : image_sums<Number>(sizes, gradients, numbers);
  std::vector<Number> results(numbers.size());
  std::vector<Number> first(threads_of(in_group)), second(first.size());
  const InType in_type{input.type};
  for (std::size_t g = 0; g < sizes.rows(); ++g) {
    first.assign(first.size(), 0);
    second.assign(second.size(), 0);
    for (std::size_t i = 0; i < in_group; ++i) {
      const std::size_t r = g * in_group + i, t = i % first.size();
      const Number sum = are_pixels ? gradients[r] : images.sums[r];
      // Without weights the product of FP32 and FP64 is fused; 16-bit ones are rounded to the type.
      if (weights.empty() && are_pixels && input.element_bytes() > 2) {
        first[t] = std::fma(gradients[r], numbers[r], first[t]);
        second[t] += sum;
        continue;
      }
      const Number scale = weights.empty() ? 1 : weights[r % sizes.channels];
      const Number product = are_pixels ? in_type(gradients[r] * numbers[r]) : images.products[r];
      first[t] = std::fma(product, scale, first[t]);
      second[t] = std::fma(sum, scale, second[t]);
    }
    const Number s1 = sum_of_threads(first), s2 = sum_of_threads(second);
    const Number own_mean = means[g], own = reciprocals[g];
    const Number share = 1 / static_cast<Number>(in_group * size);
    const Number c2 = (((std::fma(s2, own_mean, -s1) * own) * own) * own) * share;
    const Number c3 = std::fma(-c2, own_mean, -((s2 * own) * share));
    for (std::size_t i = 0; i < in_group * size; ++i) {
      const std::size_t at = g * in_group * size + i;
      const Number scale =
          weights.empty() ? own : own * weights[(g * in_group + i / size) % sizes.channels];
      results[at] = std::fma(scale, gradients[at], c2 * numbers[at]) + c3;
    }
  }
  std::vector<Number> of_weight(sizes.channels), of_bias(sizes.channels);
  for (std::size_t c = 0; c < sizes.channels; ++c) {
    for (std::size_t n = 0; n < sizes.batch; ++n) {
      const std::size_t r = n * sizes.channels + c, g = n * sizes.groups + c / in_group;
      const Number own = are_pixels ? std::fma(gradients[r], numbers[r], -(gradients[r] * means[g]))
                                    : std::fma(-images.sums[r], means[g], images.products[r]);
      of_weight[c] = std::fma(own, reciprocals[g], of_weight[c]);
      of_bias[c] += are_pixels ? gradients[r] : images.sums[r];
    }
  }
  const formats::Format& type = weight == nullptr ? input.type : weight->type;
  const Dimensions of_channels = {input.shape[1]};
  return {tensor_of_numbers(input.type, input.shape, results),
          tensor_of_numbers(type, of_channels, of_weight),
          tensor_of_numbers(type, of_channels, of_bias),
          std::to_string(threads_of(size)) + " threads an image, 32 a group, images in order"};
}

}  // namespace

ChannelNormResult group_norm(const Tensor& input, const Tensor* weight, const Tensor* bias,
                             std::int64_t groups, double epsilon) {
  return input.type == formats::fp64 ? group_norm_in<double>(input, weight, bias, groups, epsilon)
                                     : group_norm_in<float>(input, weight, bias, groups, epsilon);
}

ChannelNormGradients group_norm_gradients(const Tensor& gradient, const Tensor& input,
                                          const Tensor& mean, const Tensor& reciprocal,
                                          const Tensor* weight, std::int64_t groups) {
  if (gradient.shape != input.shape)
    throw UnknownShape{"a gradient of another shape than the input's"};
  return input.type == formats::fp64
             ? group_norm_gradients_in<double>(gradient, input, mean, reciprocal, weight, groups)
             : group_norm_gradients_in<float>(gradient, input, mean, reciprocal, weight, groups);
}

}  // namespace guardbit::emulator::operators
