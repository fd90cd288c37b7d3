#include <array>

#include "emulator/operators/layers/distances.hpp"
#include "emulator/operators/reductions.hpp"
#include "emulator/replay/calls.hpp"

// Distances between rows.
namespace guardbit::emulator::replay {
namespace {

namespace ops = operators;

const Tensor& table(const Call& call, std::size_t position, std::string_view name) {
  const Tensor& tensor = call.tensor(position, name);
  if (!(tensor.type == formats::fp32) && !(tensor.type == formats::fp64))
    throw UnknownArguments{"a type without a model"};
  if (tensor.rank() < 2) throw UnknownArguments{"no tables of rows"};
  return tensor;
}

/// [tables, rows, width] of a tensor with any number of leading dimensions.
Tensor in_three(const Tensor& tensor) {
  Tensor flat = tensor;
  const std::size_t rank = tensor.shape.size();
  std::int64_t tables = 1;
  for (std::size_t k = 0; k + 2 < rank; ++k) tables *= tensor.shape[k];
  flat.shape = {tables, tensor.shape[rank - 2], tensor.shape[rank - 1]};
  flat.stride = ops::contiguous_stride(flat.shape);
  return flat;
}
Tensor with_shape(Tensor tensor, Dimensions shape) {
  tensor.stride = ops::contiguous_stride(shape);
  tensor.shape = std::move(shape);
  return tensor;
}

void check_pair(const Tensor& first, const Tensor& second) {
  const std::size_t rank = first.shape.size();
  if (second.shape.size() != rank || !(first.type == second.type) ||
      first.shape[rank - 1] != second.shape[rank - 1] || first.count() == 0 ||
      second.count() == 0 ||
      !std::equal(first.shape.begin(), first.shape.end() - 2, second.shape.begin()))
    throw UnknownArguments{"tables that are broadcast, or without elements"};
}

Answer distances(const Call& call, Context& context) {
  const Tensor &first = table(call, 0, "x1"), &second = table(call, 1, "x2");
  check_pair(first, second);
  const double order = call.number(2, "p");
  const std::int64_t mode = call.integer(3, "compute_mode", 0);
  Dimensions shape = first.shape;
  shape.back() = second.shape[second.shape.size() - 2];
  constexpr std::int64_t always_by_product = 1, by_product_of_many = 0, many = 25;
  if (order == 2 &&
      (mode == always_by_product ||
       (mode == by_product_of_many && (shape[shape.size() - 2] > many || shape.back() > many))))
    return unmodelled("distances by a product of matrices");
  const Tensor flat_first = in_three(first), flat_second = in_three(second);
  return computed({with_shape(ops::distances({flat_first, flat_second, order}, context.threads),
                              std::move(shape))},
                  "256 threads to a distance, two stages");
}

Answer distance_gradient(const Call& call, Context& context) {
  const Tensor &first = table(call, 1, "x1"), &second = table(call, 2, "x2");
  check_pair(first, second);
  const double order = call.number(3, "p");
  const Tensor flat_first = in_three(first), flat_second = in_three(second);
  if (order == 0) {
    const std::vector<float> zeros(static_cast<std::size_t>(first.count()));
    const std::vector<double> long_zeros(zeros.size());
    return computed(
        {first.type == formats::fp64 ? ops::tensor_of_doubles(first.shape, long_zeros)
                                     : ops::tensor_of_numbers(first.type, first.shape, zeros)},
        "zeros");
  }
  const Tensor terms =
      ops::distance_gradient_terms(call.tensor(0, "grad"), {flat_first, flat_second, order},
                                   call.tensor(4, "cdist"), context.threads);
  ops::Reduced reduced = ops::sum(
      terms,
      {.dimensions = {1}, .type = {}, .machine = context.machine, .threads = context.threads});
  return computed({with_shape(std::move(reduced.result), first.shape)}, std::move(reduced.shape));
}

constexpr std::array distance_handlers = {
    Handler{"aten._cdist_backward", distance_gradient},
    Handler{"aten._cdist_forward", distances},
};

}  // namespace

std::span<const Handler> distance_calls() { return distance_handlers; }

}  // namespace guardbit::emulator::replay
