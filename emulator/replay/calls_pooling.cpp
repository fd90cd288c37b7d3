#include <algorithm>
#include <string>

#include "emulator/operators/images/adaptive_pooling.hpp"
#include "emulator/operators/images/pooling.hpp"
#include "emulator/replay/calls.hpp"

// Pooling of images and volumes.
namespace guardbit::emulator::replay {
namespace {

namespace ops = operators;

/// Images or volumes with their channels, of FP64, too.
const Tensor& images(const Tensor& tensor, int dimensions = 2) {
  if (tensor.type != formats::fp64) floating(tensor);
  if (tensor.rank() != dimensions + 1 && tensor.rank() != dimensions + 2)
    throw UnknownArguments{"not a tensor of images"};
  return tensor;
}

int dimensions_of(const Call& call) { return call.op.find("3d") != std::string::npos ? 3 : 2; }

/// One number stands for all dimensions.
ops::Space space_of(const Call& call, std::size_t position, std::string_view name, int dimensions,
                    const ops::Space& absent) {
  const Dimensions numbers = call.integers(position, name, {});
  if (numbers.empty()) return absent;
  if (numbers.size() != 1 && std::ssize(numbers) != dimensions)
    throw UnknownArguments{"numbers for another number of dimensions"};
  ops::Space space = absent;
  space.columns = numbers.back();
  space.rows = numbers.size() == 1 ? numbers[0] : numbers[numbers.size() - 2];
  if (dimensions > 2) space.depth = numbers[0];
  return space;
}

/// Of the result, as the recording has it where it has one.
ops::Space size_of_result(const Call& call, int dimensions) {
  const ops::Space size = space_of(call, 1, "output_size", dimensions, {});
  if (std::min({size.depth, size.rows, size.columns}) < 1)
    throw UnknownArguments{"a size of the result"};
  for (const Tensor* recorded : tensors_of(call.out)) {
    if (ops::Images(recorded->shape, dimensions).size != size)
      throw UnknownArguments{"the recorded result has another size"};
  }
  return size;
}

void check_window(const ops::PoolingWindow& window) {
  constexpr std::int64_t most = 1 << 20;
  const auto check = [](const ops::Space& space, std::int64_t least) {
    if (std::min({space.depth, space.rows, space.columns}) < least)
      throw UnknownArguments{"a window, stride or dilation below 1"};
    if (std::max({space.depth, space.rows, space.columns}) > most)
      throw UnknownArguments{"a window with a number above " + std::to_string(most)};
  };
  check(window.size, 1);
  check(window.stride, 1);
  check(window.dilation, 1);
  check(window.padding, 0);
}

/// `first` is the position of the window's size; dilation stands only in max pooling.
ops::PoolingWindow window_of(const Call& call, std::size_t first, bool has_dilation) {
  ops::PoolingWindow window;
  const int dimensions = window.dimensions = dimensions_of(call);
  window.size = space_of(call, first, "kernel_size", dimensions, {});
  window.stride = space_of(call, first + 1, "stride", dimensions, window.size);
  window.padding = space_of(call, first + 2, "padding", dimensions, {0, 0, 0});
  if (has_dilation) window.dilation = space_of(call, first + 3, "dilation", dimensions, {});
  window.rounds_up = call.boolean(first + (has_dilation ? 4 : 3), "ceil_mode", false);
  check_window(window);
  return window;
}
ops::AverageRule rule_of(const Call& call, std::size_t first) {
  ops::AverageRule rule{.counts_padding = call.boolean(first, "count_include_pad", true),
                        .divisor = {}};
  if (call.find(first + 1, "divisor_override") != nullptr)
    rule.divisor = call.integer(first + 1, "divisor_override");
  return rule;
}

Answer in_no_order(std::string reason) {
  return {.results = {}, .plan = std::move(reason), .status = Status::unordered};
}
Answer in_order_of_few(std::optional<Tensor> result, std::string plan) {
  if (!result) return in_no_order("atomics add what windows share, in no fixed order");
  return computed({std::move(result)}, std::move(plan));
}

Answer max_pool(const Call& call, Context&) {
  ops::MaxPooled all = ops::max_pool(images(call.tensor(0, "self")), window_of(call, 1, true));
  return computed({std::move(all.numbers), std::move(all.indices)},
                  "the first greatest of a window");
}
Answer max_pool_gradient(const Call& call, Context&) {
  return computed(
      {ops::max_pool_gradient(images(call.tensor(0, "grad_output")), images(call.tensor(1, "self")),
                              call.tensor(7, "indices"), window_of(call, 2, true))},
      "windows in order");
}
Answer max_pool_volumes_gradient(const Call& call, Context&) {
  return in_order_of_few(
      ops::max_pool_volumes_gradient(images(call.tensor(0, "grad_output"), 3),
                                     images(call.tensor(1, "self"), 3), call.tensor(7, "indices")),
      "at most two windows an element");
}
Answer average_pool(const Call& call, Context&) {
  return computed({ops::average_pool(images(call.tensor(0, "self"), dimensions_of(call)),
                                     window_of(call, 1, false), rule_of(call, 5))},
                  "rows of a window in order");
}
Answer average_pool_gradient(const Call& call, Context&) {
  const int dimensions = dimensions_of(call);
  return in_order_of_few(
      ops::average_pool_gradient(images(call.tensor(0, "grad_output"), dimensions),
                                 images(call.tensor(1, "self"), dimensions),
                                 window_of(call, 2, false), rule_of(call, 6)),
      "windows in order");
}
Answer adaptive_average_pool(const Call& call, Context&) {
  const int dimensions = dimensions_of(call);
  return computed({ops::adaptive_average_pool(images(call.tensor(0, "self"), dimensions),
                                              size_of_result(call, dimensions), dimensions)},
                  "rows of a share in order");
}
Answer adaptive_average_pool_gradient(const Call& call, Context&) {
  const int dimensions = dimensions_of(call);
  return in_order_of_few(
      ops::adaptive_average_pool_gradient(images(call.tensor(0, "grad_output"), dimensions),
                                          images(call.tensor(1, "self"), dimensions), dimensions),
      "shares in order");
}
Answer adaptive_max_pool_gradient(const Call& call, Context&) {
  const int dimensions = dimensions_of(call);
  return in_order_of_few(
      ops::adaptive_max_pool_gradient(images(call.tensor(0, "grad_output"), dimensions),
                                      images(call.tensor(1, "self"), dimensions),
                                      call.tensor(2, "indices"), dimensions),
      "at most two windows an element");
}
/// col2im, which adds up the windows of `fold`.
Answer fold_windows(const Call& call, Context&) {
  const Tensor& columns = call.tensor(0, "self");
  if (columns.type != formats::fp64) floating(columns);
  ops::PoolingWindow window;
  window.size = space_of(call, 2, "kernel_size", 2, {});
  window.dilation = space_of(call, 3, "dilation", 2, {});
  window.padding = space_of(call, 4, "padding", 2, {0, 0, 0});
  window.stride = space_of(call, 5, "stride", 2, {});
  check_window(window);
  return computed({ops::fold_windows(columns, size_of_result(call, 2), window)},
                  "windows in order");
}
Answer shares_by_atomics(const Call&, Context&) {
  return in_no_order("atomics add what is padded with one element, in no fixed order");
}

constexpr std::array pooling_handlers = {
    Handler{"aten._adaptive_avg_pool2d", adaptive_average_pool},
    Handler{"aten._adaptive_avg_pool2d_backward", adaptive_average_pool_gradient},
    Handler{"aten._adaptive_avg_pool3d", adaptive_average_pool},
    Handler{"aten._adaptive_avg_pool3d_backward", adaptive_average_pool_gradient},
    Handler{"aten.adaptive_max_pool2d_backward", adaptive_max_pool_gradient},
    Handler{"aten.adaptive_max_pool3d_backward", adaptive_max_pool_gradient},
    Handler{"aten.avg_pool2d", average_pool},
    Handler{"aten.avg_pool2d_backward", average_pool_gradient},
    Handler{"aten.avg_pool3d", average_pool},
    Handler{"aten.avg_pool3d_backward", average_pool_gradient},
    Handler{"aten.col2im", fold_windows},
    Handler{"aten.max_pool2d_with_indices", max_pool},
    Handler{"aten.max_pool2d_with_indices_backward", max_pool_gradient},
    Handler{"aten.max_pool3d_with_indices_backward", max_pool_volumes_gradient},
    Handler{"aten.reflection_pad2d_backward", shares_by_atomics},
    Handler{"aten.reflection_pad3d_backward", shares_by_atomics},
    Handler{"aten.replication_pad2d_backward", shares_by_atomics},
    Handler{"aten.replication_pad3d_backward", shares_by_atomics},
};

}  // namespace

std::span<const Handler> pooling_calls() { return pooling_handlers; }

}  // namespace guardbit::emulator::replay
