#include <algorithm>
#include <string>

#include "emulator/operators/images/grid_sampling.hpp"
#include "emulator/operators/images/interpolation.hpp"
#include "emulator/replay/calls.hpp"

// Interpolation of rows, images and volumes, by sizes and by grids.
namespace guardbit::emulator::replay {
namespace {

namespace ops = operators;

int dimensions_of_space(const Call& call) {
  for (const int dimensions : {1, 2, 3}) {
    if (call.op.find(std::to_string(dimensions) + "d") != std::string::npos) return dimensions;
  }
  throw UnknownArguments{"an unknown number of dimensions"};
}
const Tensor& interpolated(const Tensor& tensor, int dimensions) {
  if (tensor.type != formats::fp64) floating(tensor);
  if (tensor.rank() != dimensions + 2) throw UnknownArguments{"not a tensor of images"};
  return tensor;
}

void check_result(const Call& call, const Dimensions& shape) {
  for (const Tensor* recorded : tensors_of(call.out)) {
    if (recorded->shape != shape) throw UnknownArguments{"the recorded result has another size"};
  }
}

/// `scales` is the position of the first scale.
ops::Interpolation interpolation_of(const Call& call, std::size_t scales) {
  ops::Interpolation rule;
  rule.dimensions = dimensions_of_space(call);
  const Dimensions size = call.integers(1, "output_size");
  if (std::ssize(size) != rule.dimensions || std::ranges::min(size) < 1)
    throw UnknownArguments{"a size of the result"};
  rule.size.columns = size.back();
  if (rule.dimensions > 1) rule.size.rows = size[size.size() - 2];
  if (rule.dimensions > 2) rule.size.depth = size[0];
  rule.takes_centres = call.op.find("exact") != std::string::npos;
  const auto scale = [&](std::size_t position, std::string_view name) {
    return call.find(position, name) == nullptr ? std::optional<double>{}
                                                : call.number(position, name);
  };
  if (rule.dimensions > 2) rule.scales.depth = scale(scales++, "scales_d");
  if (rule.dimensions > 1) rule.scales.rows = scale(scales++, "scales_h");
  rule.scales.columns = scale(scales, rule.dimensions > 1 ? "scales_w" : "scales");
  return rule;
}
ops::Interpolation rule_with_corners(const Call& call) {
  ops::Interpolation rule = interpolation_of(call, 3);
  rule.aligns_corners = call.boolean(2, "align_corners", false);
  return rule;
}
const Tensor& input_of(const Call& call, const ops::Interpolation& rule) {
  const Tensor& input = interpolated(call.tensor(0, "self"), rule.dimensions);
  check_result(call, ops::resized(input.shape, rule.size, rule.dimensions));
  return input;
}

Answer nearest(const Call& call, Context&) {
  const ops::Interpolation rule = interpolation_of(call, 2);
  return computed({ops::interpolate_nearest(input_of(call, rule), rule)}, "one element each");
}
Answer nearest_gradient(const Call& call, Context&) {
  const ops::Interpolation rule = interpolation_of(call, 3);
  const Tensor& gradient = interpolated(call.tensor(0, "grad_output"), rule.dimensions);
  const Dimensions shape = call.integers(2, "input_size");
  if (std::ssize(shape) != gradient.rank() || std::ranges::min(shape) < 1)
    throw UnknownArguments{"a size of the result"};
  check_result(call, shape);
  return computed({ops::interpolate_nearest_gradient(gradient, shape, rule)}, "results in order");
}
Answer linear(const Call& call, Context&) {
  const ops::Interpolation rule = rule_with_corners(call);
  return computed({ops::interpolate_linear(input_of(call, rule), rule)},
                  rule.dimensions == 1   ? "two neighbours"
                  : rule.dimensions == 2 ? "four neighbours"
                                         : "eight neighbours");
}
Answer cubic(const Call& call, Context&) {
  const ops::Interpolation rule = rule_with_corners(call);
  return computed({ops::interpolate_cubic(input_of(call, rule), rule)},
                  "sixteen neighbours, rows first");
}
Answer antialiased(const Call& call, Context&) {
  const ops::Interpolation rule = rule_with_corners(call);
  const bool is_cubic = call.op.find("bicubic") != std::string::npos;
  return computed({ops::interpolate_antialiased(input_of(call, rule), rule, is_cubic)},
                  "all elements of a result's width, rows first");
}
Answer grid_sample(const Call& call, Context&) {
  const int dimensions = dimensions_of_space(call);
  const std::int64_t sampling = call.integer(2, "interpolation_mode");
  const std::int64_t outside = call.integer(3, "padding_mode");
  if (sampling < 0 || sampling > (dimensions > 2 ? 1 : 2) || outside < 0 || outside > 2)
    throw UnknownArguments{"an unknown mode"};
  const Tensor& input = interpolated(call.tensor(0, "input"), dimensions);
  const Tensor& grid = interpolated(call.tensor(1, "grid"), dimensions);
  if (grid.type != input.type) throw UnknownArguments{"a grid of another type"};
  return computed({ops::grid_sample(input, grid,
                                    {.sampling = static_cast<ops::Sampling>(sampling),
                                     .outside = static_cast<ops::Outside>(outside),
                                     .aligns_corners = call.boolean(4, "align_corners", false)},
                                    dimensions)},
                  "neighbours in order");
}

Answer by_atomics(const Call&, Context&) {
  return {.results = {},
          .plan = "atomics add to neighbours, in no fixed order",
          .status = Status::unordered};
}

constexpr std::array interpolation_handlers = {
    Handler{"aten._upsample_bicubic2d_aa", antialiased},
    Handler{"aten._upsample_bicubic2d_aa_backward", by_atomics},
    Handler{"aten._upsample_bilinear2d_aa", antialiased},
    Handler{"aten._upsample_bilinear2d_aa_backward", by_atomics},
    Handler{"aten._upsample_nearest_exact1d", nearest},
    Handler{"aten._upsample_nearest_exact1d_backward", nearest_gradient},
    Handler{"aten._upsample_nearest_exact2d", nearest},
    Handler{"aten._upsample_nearest_exact2d_backward", nearest_gradient},
    Handler{"aten._upsample_nearest_exact3d", nearest},
    Handler{"aten._upsample_nearest_exact3d_backward", nearest_gradient},
    Handler{"aten.grid_sampler_2d", grid_sample},
    Handler{"aten.grid_sampler_2d_backward", by_atomics},
    Handler{"aten.grid_sampler_3d", grid_sample},
    Handler{"aten.grid_sampler_3d_backward", by_atomics},
    Handler{"aten.upsample_bicubic2d", cubic},
    Handler{"aten.upsample_bicubic2d_backward", by_atomics},
    Handler{"aten.upsample_bilinear2d", linear},
    Handler{"aten.upsample_bilinear2d_backward", by_atomics},
    Handler{"aten.upsample_linear1d", linear},
    Handler{"aten.upsample_linear1d_backward", by_atomics},
    Handler{"aten.upsample_nearest1d", nearest},
    Handler{"aten.upsample_nearest1d_backward", nearest_gradient},
    Handler{"aten.upsample_nearest2d", nearest},
    Handler{"aten.upsample_nearest2d_backward", nearest_gradient},
    Handler{"aten.upsample_nearest3d", nearest},
    Handler{"aten.upsample_nearest3d_backward", nearest_gradient},
    Handler{"aten.upsample_trilinear3d", linear},
    Handler{"aten.upsample_trilinear3d_backward", by_atomics},
};

}  // namespace

std::span<const Handler> interpolation_calls() { return interpolation_handlers; }

}  // namespace guardbit::emulator::replay
