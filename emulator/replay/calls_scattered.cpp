#include <limits>

#include "emulator/operators/scattered_sums.hpp"
#include "emulator/replay/calls.hpp"

// Sums whose terms are scattered, and norms of lists.
namespace guardbit::emulator::replay {
namespace {

namespace ops = operators;

const Tensor& floating(const Tensor& tensor) {
  if (!ops::is_working_type(tensor.type)) throw UnknownArguments{"a type without a model"};
  return tensor;
}

/// The recorded result, if it is one of that shape.
const Tensor* recorded_result(const Call& call, const Dimensions& shape) {
  const Tensor* tensor = call.out.tensor();
  return tensor != nullptr && tensor->shape == shape ? tensor : nullptr;
}

Answer answered(ops::ScatteredSum sum) {
  if (sum.result) return computed({std::move(sum.result)}, std::move(sum.plan));
  return {.results = {},
          .plan = std::move(sum.plan),
          .status = Status::unordered,
          .impossible = {sum.impossible}};
}

Answer embedding_gradient(const Call& call, Context&) {
  const Tensor& gradient = floating(call.tensor(0, "grad_output"));
  const std::int64_t rows = call.integer(2, "num_weights");
  if (gradient.shape.empty()) return unmodelled("a gradient of one number");
  const bool scales = call.boolean(4, "scale_grad_by_freq", false);
  if (scales) return unmodelled("gradients scaled by frequency, not measured");
  return answered(ops::embedding_gradient(gradient, call.tensor(1, "indices"), rows,
                                          call.integer(3, "padding_idx", -1), scales,
                                          recorded_result(call, {rows, gradient.shape.back()})));
}

Answer index_add(const Call& call, Context&) {
  const Tensor& input = floating(call.tensor(0, "self"));
  return answered(ops::index_add(input, call.integer(1, "dim"), call.tensor(2, "index"),
                                 floating(call.tensor(3, "source")), call.number(4, "alpha", 1),
                                 recorded_result(call, input.shape)));
}

Answer norms_of_list(const Call& call, Context&) {
  const std::vector<Tensor> tensors = call.tensors(0, "self");
  for (const Tensor& tensor : tensors) floating(tensor);
  if (call.number(1, "ord", 2) != 2) return unmodelled("a norm of another order, not measured");
  std::vector<std::optional<Tensor>> norms;
  for (Tensor& norm : ops::norms_of_list(tensors, 2, call.dtype(2, "dtype")))
    norms.emplace_back(std::move(norm));
  return computed(std::move(norms), "chunks of 65536, 512 threads with 4 accumulators");
}

constexpr std::array handlers = {
    Handler{"aten._foreach_norm", norms_of_list},
    Handler{"aten.embedding_dense_backward", embedding_gradient},
    Handler{"aten.index_add", index_add},
};

}  // namespace

std::span<const Handler> scattered_calls() { return handlers; }

}  // namespace guardbit::emulator::replay
