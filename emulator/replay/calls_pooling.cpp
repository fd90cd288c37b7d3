#include <algorithm>
#include <string>

#include "emulator/operators/pooling.hpp"
#include "emulator/replay/calls.hpp"

// Pooling and interpolation of images.
namespace guardbit::emulator::replay {
namespace {

namespace ops = operators;

const Tensor& images(const Tensor& tensor) {
  if (floating(tensor).rank() < 3) throw UnknownArguments{"not a tensor of images"};
  return tensor;
}

ops::Pair pair_of(const Dimensions& numbers, ops::Pair absent) {
  if (numbers.empty()) return absent;
  return {numbers.front(), numbers.back()};
}
ops::Pair pair_of(const Call& call, std::size_t position, std::string_view name, ops::Pair absent) {
  return pair_of(call.integers(position, name, {}), absent);
}

/// `first` is the position of the window's size; dilation stands only in max pooling.
ops::PoolingWindow window_of(const Call& call, std::size_t first, bool has_dilation) {
  ops::PoolingWindow window;
  window.size = pair_of(call, first, "kernel_size", {});
  window.stride = pair_of(call, first + 1, "stride", window.size);
  window.padding = pair_of(call, first + 2, "padding", {0, 0});
  if (has_dilation) window.dilation = pair_of(call, first + 3, "dilation", {1, 1});
  window.rounds_up = call.boolean(first + (has_dilation ? 4 : 3), "ceil_mode", false);
  if (window.stride.rows < 1 || window.stride.columns < 1 || window.size.rows < 1 ||
      window.size.columns < 1)
    throw UnknownArguments{"a window or stride below 1"};
  constexpr std::int64_t most = 1 << 20;
  for (const ops::Pair& pair : {window.size, window.stride, window.padding, window.dilation}) {
    if (std::min(pair.rows, pair.columns) < 0 || std::max(pair.rows, pair.columns) > most)
      throw UnknownArguments{"a window with a number that is negative or above " +
                             std::to_string(most)};
  }
  return window;
}
ops::AverageRule rule_of(const Call& call, std::size_t first) {
  ops::AverageRule rule{.counts_padding = call.boolean(first, "count_include_pad", true),
                        .divisor = {}};
  if (call.find(first + 1, "divisor_override") != nullptr)
    rule.divisor = call.integer(first + 1, "divisor_override");
  return rule;
}
ops::Scales scales_of(const Call& call, std::size_t first) {
  ops::Scales scales;
  scales.takes_centres = call.op.find("exact") != std::string::npos;
  if (call.find(first, "scales_h") != nullptr) scales.rows = call.number(first, "scales_h");
  if (call.find(first + 1, "scales_w") != nullptr)
    scales.columns = call.number(first + 1, "scales_w");
  return scales;
}

/// Of the result, as the recording has it where it has one.
ops::Pair size_of_result(const Call& call) {
  const ops::Pair size = pair_of(call, 1, "output_size", {});
  for (const Tensor* recorded : tensors_of(call.out)) {
    const std::int64_t rank = images(*recorded).rank();
    const auto last = recorded->shape.begin() + rank - 1;
    if (*(last - 1) != size.rows || *last != size.columns)
      throw UnknownArguments{"the recorded result has another size"};
  }
  return size;
}

Answer in_no_order(std::string reason) {
  return {.results = {}, .plan = std::move(reason), .status = Status::unordered};
}

Answer max_pool(const Call& call, Context&) {
  ops::MaxPooled all = ops::max_pool(images(call.tensor(0, "self")), window_of(call, 1, true));
  return computed({std::move(all.numbers), std::move(all.indices)},
                  "the first greatest of a window");
}
Answer max_pool_gradient(const Call& call, Context&) {
  return computed(
      {ops::max_pool_gradient(images(call.tensor(0, "grad_output")), images(call.tensor(1, "self")),
                              call.tensor(7, "indices"))},
      "windows in order");
}
Answer average_pool(const Call& call, Context&) {
  return computed({ops::average_pool(images(call.tensor(0, "self")), window_of(call, 1, false),
                                     rule_of(call, 5))},
                  "rows of a window in order");
}
Answer average_pool_gradient(const Call& call, Context&) {
  return computed({ops::average_pool_gradient(images(call.tensor(0, "grad_output")),
                                              images(call.tensor(1, "self")),
                                              window_of(call, 2, false), rule_of(call, 6))},
                  "windows in order");
}
Answer adaptive_average_pool(const Call& call, Context&) {
  return computed(
      {ops::adaptive_average_pool(images(call.tensor(0, "self")), size_of_result(call))},
      "rows of a window in order, two divisions");
}
Answer adaptive_average_pool_gradient(const Call& call, Context&) {
  auto result = ops::adaptive_average_pool_gradient(images(call.tensor(0, "grad_output")),
                                                    images(call.tensor(1, "self")));
  if (!result) return in_no_order("atomics add what windows share, in no fixed order");
  return computed({std::move(result)}, "one window an element, two divisions");
}
Answer upsample_nearest(const Call& call, Context&) {
  return computed({ops::upsample_nearest(images(call.tensor(0, "self")), size_of_result(call),
                                         scales_of(call, 2))},
                  "one element each");
}
Answer upsample_nearest_gradient(const Call& call, Context&) {
  return computed(
      {ops::upsample_nearest_gradient(images(call.tensor(0, "grad_output")),
                                      call.integers(2, "input_size"), scales_of(call, 3))},
      "rows in order");
}
Answer upsample_bilinear(const Call& call, Context&) {
  return computed(
      {ops::upsample_bilinear(images(call.tensor(0, "self")), size_of_result(call),
                              call.boolean(2, "align_corners", false), scales_of(call, 3))},
      "four neighbours");
}
Answer upsample_bilinear_gradient(const Call&, Context&) {
  return in_no_order("atomics add to four neighbours, in no fixed order");
}

/// Of tensors of three dimensions, whose rows are resized.
ops::Scales scale_of_rows(const Call& call, std::size_t position) {
  ops::Scales scales;
  scales.takes_centres = call.op.find("exact") != std::string::npos;
  if (call.find(position, "scales") != nullptr) scales.columns = call.number(position, "scales");
  return scales;
}
std::int64_t length_of_result(const Call& call) {
  const Dimensions size = call.integers(1, "output_size");
  if (size.size() != 1 || size[0] < 1) throw UnknownArguments{"a size of the result"};
  return size[0];
}
Answer upsample_rows(const Call& call, Context&) {
  const Tensor& input = images(call.tensor(0, "self"));
  return computed({ops::upsample_nearest(input, {input.shape[1], length_of_result(call)},
                                         scale_of_rows(call, 2))},
                  "one element each");
}
Answer upsample_rows_gradient(const Call& call, Context&) {
  return computed(
      {ops::upsample_nearest_gradient(images(call.tensor(0, "grad_output")),
                                      call.integers(2, "input_size"), scale_of_rows(call, 3))},
      "elements in order");
}
Answer upsample_linear(const Call& call, Context&) {
  return computed({ops::upsample_linear(images(call.tensor(0, "self")), length_of_result(call),
                                        call.boolean(2, "align_corners", false),
                                        scale_of_rows(call, 3).columns)},
                  "two neighbours");
}
Answer upsample_linear_gradient(const Call&, Context&) {
  return in_no_order("atomics add to two neighbours, in no fixed order");
}
Answer upsample_bicubic(const Call& call, Context&) {
  return computed(
      {ops::upsample_bicubic(images(call.tensor(0, "self")), size_of_result(call),
                             call.boolean(2, "align_corners", false), scales_of(call, 3))},
      "sixteen neighbours, rows first");
}
Answer upsample_bicubic_gradient(const Call&, Context&) {
  return in_no_order("atomics add to sixteen neighbours, in no fixed order");
}
Answer adaptive_max_pool_gradient(const Call& call, Context&) {
  auto result =
      ops::adaptive_max_pool_gradient(images(call.tensor(0, "grad_output")),
                                      images(call.tensor(1, "self")), call.tensor(2, "indices"));
  if (!result) return in_no_order("atomics add what windows share, in no fixed order");
  return computed({std::move(result)}, "at most two windows an element");
}
Answer shares_by_atomics(const Call&, Context&) {
  return in_no_order("atomics add what is padded with one element, in no fixed order");
}

constexpr std::array pooling_handlers = {
    Handler{"aten._adaptive_avg_pool2d", adaptive_average_pool},
    Handler{"aten._adaptive_avg_pool2d_backward", adaptive_average_pool_gradient},
    Handler{"aten._upsample_nearest_exact1d", upsample_rows},
    Handler{"aten._upsample_nearest_exact1d_backward", upsample_rows_gradient},
    Handler{"aten._upsample_nearest_exact2d", upsample_nearest},
    Handler{"aten._upsample_nearest_exact2d_backward", upsample_nearest_gradient},
    Handler{"aten.adaptive_max_pool2d_backward", adaptive_max_pool_gradient},
    Handler{"aten.avg_pool2d", average_pool},
    Handler{"aten.avg_pool2d_backward", average_pool_gradient},
    Handler{"aten.max_pool2d_with_indices", max_pool},
    Handler{"aten.max_pool2d_with_indices_backward", max_pool_gradient},
    Handler{"aten.reflection_pad2d_backward", shares_by_atomics},
    Handler{"aten.reflection_pad3d_backward", shares_by_atomics},
    Handler{"aten.replication_pad2d_backward", shares_by_atomics},
    Handler{"aten.replication_pad3d_backward", shares_by_atomics},
    Handler{"aten.upsample_bicubic2d", upsample_bicubic},
    Handler{"aten.upsample_bicubic2d_backward", upsample_bicubic_gradient},
    Handler{"aten.upsample_bilinear2d", upsample_bilinear},
    Handler{"aten.upsample_bilinear2d_backward", upsample_bilinear_gradient},
    Handler{"aten.upsample_linear1d", upsample_linear},
    Handler{"aten.upsample_linear1d_backward", upsample_linear_gradient},
    Handler{"aten.upsample_nearest1d", upsample_rows},
    Handler{"aten.upsample_nearest1d_backward", upsample_rows_gradient},
    Handler{"aten.upsample_nearest2d", upsample_nearest},
    Handler{"aten.upsample_nearest2d_backward", upsample_nearest_gradient},
};

}  // namespace

std::span<const Handler> pooling_calls() { return pooling_handlers; }

}  // namespace guardbit::emulator::replay
