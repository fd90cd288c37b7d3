#include <limits>

#include "emulator/operators/layers/embedding_bag.hpp"
#include "emulator/operators/scattered_sums.hpp"
#include "emulator/replay/calls.hpp"

// Sums whose terms are scattered.
namespace guardbit::emulator::replay {
namespace {

namespace ops = operators;

/// The recorded result, if it is one of that shape.
const Tensor* recorded_result(const Call& call, const Dimensions& shape, const Context& context) {
  const Tensor* tensor = context.has_results ? call.out.tensor() : nullptr;
  return tensor != nullptr && tensor->shape == shape ? tensor : nullptr;
}

Answer answered(ops::ScatteredSum sum) {
  if (sum.result) return computed({std::move(sum.result)}, std::move(sum.plan));
  return {.results = {},
          .plan = std::move(sum.plan),
          .status = Status::unordered,
          .impossible = {sum.impossible}};
}

Answer embedding_gradient(const Call& call, Context& context) {
  const Tensor& gradient = floating_or_double(call.tensor(0, "grad_output"));
  const std::int64_t rows = call.integer(2, "num_weights");
  if (gradient.shape.empty()) return unmodelled("a gradient of one number");
  const Tensor& indices = call.tensor(1, "indices");
  const std::int64_t padding = call.integer(3, "padding_idx", -1);
  if (call.boolean(4, "scale_grad_by_freq", false)) {
    if (gradient.type == formats::fp64)
      return unmodelled("gradients of FP64 scaled by frequency, not measured");
    return computed({ops::embedding_gradient_by_frequency(gradient, indices, rows, padding)},
                    "pieces of 10 indices in order, each divided by how often its index is there");
  }
  return answered(
      ops::embedding_gradient(gradient, indices, rows, padding,
                              recorded_result(call, {rows, gradient.shape.back()}, context)));
}

Answer index_add(const Call& call, Context& context) {
  const Tensor& input = floating(call.tensor(0, "self"));
  return answered(ops::index_add(input, call.integer(1, "dim"), call.tensor(2, "index"),
                                 floating(call.tensor(3, "source")), call.number(4, "alpha", 1),
                                 recorded_result(call, input.shape, context)));
}

constexpr std::int64_t sum_mode = 0, mean_mode = 1, greatest_mode = 2;

/// _embedding_bag and the same without a gradient.
Answer embedding_bag(const Call& call, Context&) {
  const Tensor& table = floating_or_double(call.tensor(0, "weight"));
  const std::int64_t mode = call.integer(4, "mode", sum_mode);
  const ops::Bags bags{.indices = call.tensor(1, "indices"),
                       .offsets = call.tensor(2, "offsets"),
                       .has_last_offset = call.boolean(7, "include_last_offset", false),
                       .is_mean = mode == mean_mode,
                       .weights = call.optional_tensor(6, "per_sample_weights"),
                       .padding = call.integer(8, "padding_idx", -1)};
  if (mode == greatest_mode) {
    ops::GreatestOfBags greatest = ops::greatest_of_bags(table, bags);
    return computed({std::move(greatest.numbers), ops::bags_of_indices(bags),
                     ops::sizes_of_bags(bags), std::move(greatest.rows)},
                    "the first greatest of each bag");
  }
  Answer answer = computed(
      {ops::embedding_bag(table, bags), ops::bags_of_indices(bags), ops::sizes_of_bags(bags)},
      "rows in order");
  answer.data_from = 3;
  return answer;
}

Answer embedding_bag_gradient(const Call& call, Context&) {
  const std::int64_t mode = call.integer(8, "mode");
  if (mode != sum_mode && mode != mean_mode) return unmodelled("the greatest of each bag");
  if (call.boolean(7, "scale_grad_by_freq", false))
    return unmodelled("gradients scaled by frequency, not measured");
  return computed(
      {ops::embedding_bag_gradient(
          floating(call.tensor(0, "grad")), call.tensor(1, "indices"), call.tensor(3, "offset2bag"),
          call.tensor(4, "bag_size"), call.integer(6, "num_weights"), mode == mean_mode,
          call.optional_tensor(10, "per_sample_weights"), call.integer(11, "padding_idx", -1))},
      "pieces of 10 indices in order");
}

constexpr std::array scattered_handlers = {
    Handler{"aten._embedding_bag", embedding_bag},
    Handler{"aten._embedding_bag_backward", embedding_bag_gradient},
    Handler{"aten._embedding_bag_forward_only", embedding_bag},
    Handler{"aten.embedding_dense_backward", embedding_gradient},
    Handler{"aten.index_add", index_add},
};

}  // namespace

std::span<const Handler> scattered_calls() { return scattered_handlers; }

}  // namespace guardbit::emulator::replay
