#include <algorithm>
#include <optional>
#include <vector>

#include "emulator/operators/scattered_sums.hpp"
#include "emulator/replay/calls.hpp"

// Operators that move data, and draws whose generator a recording does not hold.
namespace guardbit::emulator::replay {
namespace {

Answer draws(const Call&, Context&) {
  return moves_data("draws of a generator that is not recorded");
}
Answer marks(const Call&, Context&) { return moves_data("a mark of the profiler"); }

/// A place that is written more than once adds up where the call accumulates.
Answer puts(const Call& call, Context&) {
  const Tensor& input = call.tensor(0, "self");
  const Tensor& values = call.tensor(2, "values");
  if (!call.boolean(3, "accumulate", false) || formats::is_integer(input.type)) return moves_data();
  if ((!operators::is_working_type(input.type) && input.type != formats::fp64) ||
      values.type != input.type)
    return unmodelled("values added at indices, of a type without a model");
  std::vector<std::optional<Tensor>> indices;
  const Value* all = call.find(1, "indices");
  if (all == nullptr || all->list() == nullptr) return unmodelled("no list of indices");
  for (const Value& index : *all->list()) {
    indices.emplace_back();
    if (const Tensor* tensor = index.tensor()) indices.back() = *tensor;
  }
  return computed({operators::add_at_places(input, indices, values)},
                  "each place's values in the order of the indices");
}

/// Which integers are among others.
Answer is_in(const Call& call, Context&) {
  const Tensor& elements = call.tensor(0, "elements");
  const Tensor& others = call.tensor(1, "test_elements");
  if (!formats::is_integer(elements.type) || !formats::is_integer(others.type))
    return unmodelled("a search among floating numbers");
  std::vector<std::int64_t> all = operators::integers_of(others);
  std::ranges::sort(all);
  const bool inverts = call.boolean(3, "invert", false);
  std::vector<std::int64_t> found = operators::integers_of(elements);
  for (std::int64_t& x : found) x = std::ranges::binary_search(all, x) != inverts ? 1 : 0;
  return computed({operators::tensor_of_integers(formats::b1, elements.shape, found)},
                  "integers: exact");
}

constexpr std::array data_handlers = {
    Handler{"aten._cudnn_rnn_flatten_weight", moves},
    Handler{"aten._index_put_impl_", puts},
    Handler{"aten._local_scalar_dense", moves},
    Handler{"aten._pack_padded_sequence", moves},
    Handler{"aten._unsafe_index_put", puts},
    Handler{"aten._unsafe_view", moves},
    Handler{"aten.arange", moves},
    Handler{"aten.as_strided", moves},
    Handler{"aten.as_strided_", moves},
    Handler{"aten.bernoulli", draws},
    Handler{"aten.bernoulli_", draws},
    Handler{"aten.cat", moves},
    Handler{"aten.clone", moves},
    Handler{"aten.constant_pad_nd", moves},
    Handler{"aten.detach", moves},
    Handler{"aten.diag_embed", moves},
    Handler{"aten.embedding", moves},
    Handler{"aten.empty", moves},
    Handler{"aten.empty_like", moves},
    Handler{"aten.empty_strided", moves},
    Handler{"aten.equal", moves},
    Handler{"aten.exponential_", draws},
    Handler{"aten.eye", moves},
    Handler{"aten.fill_", moves},
    Handler{"aten.flip", moves},
    Handler{"aten.full", moves},
    Handler{"aten.full_like", moves},
    Handler{"aten.gather", moves},
    Handler{"aten.index", moves},
    Handler{"aten.index_copy", moves},
    Handler{"aten.index_copy_", moves},
    Handler{"aten.index_fill", moves},
    Handler{"aten.index_fill_", moves},
    Handler{"aten.index_put", puts},
    Handler{"aten.index_put_", puts},
    Handler{"aten.index_select", moves},
    Handler{"aten.isin.Tensor_Tensor", is_in},
    Handler{"aten.lift_fresh", moves},
    Handler{"aten.lift_fresh_copy", moves},
    Handler{"aten.masked_scatter", moves},
    Handler{"aten.masked_select", moves},
    Handler{"aten.multinomial", draws},
    Handler{"aten.native_dropout", draws},
    Handler{"aten.new_empty", moves},
    Handler{"aten.new_empty_strided", moves},
    Handler{"aten.new_full", moves},
    Handler{"aten.new_ones", moves},
    Handler{"aten.new_zeros", moves},
    Handler{"aten.nonzero", moves},
    Handler{"aten.normal_", draws},
    Handler{"aten.one_hot", moves},
    Handler{"aten.ones", moves},
    Handler{"aten.ones_like", moves},
    Handler{"aten.rand", draws},
    Handler{"aten.rand_like", draws},
    Handler{"aten.randint", draws},
    Handler{"aten.randint_like", draws},
    Handler{"aten.randn", draws},
    Handler{"aten.randn_like", draws},
    Handler{"aten.random_", draws},
    Handler{"aten.randperm", draws},
    Handler{"aten.repeat", moves},
    Handler{"aten.roll", moves},
    Handler{"aten.scalar_tensor", moves},
    Handler{"aten.scatter.src", moves},
    Handler{"aten.scatter.value", moves},
    Handler{"aten.scatter_.src", moves},
    Handler{"aten.scatter_.value", moves},
    Handler{"aten.select_backward", moves},
    Handler{"aten.slice_backward", moves},
    Handler{"aten.split_with_sizes_copy", moves},
    Handler{"aten.squeeze_", moves},
    Handler{"aten.stack", moves},
    Handler{"aten.t_", moves},
    Handler{"aten.transpose_", moves},
    Handler{"aten.tril", moves},
    Handler{"aten.tril_indices", moves},
    Handler{"aten.triu", moves},
    Handler{"aten.triu_indices", moves},
    Handler{"aten.uniform_", draws},
    Handler{"aten.unsqueeze_", moves},
    Handler{"aten.view", moves},
    Handler{"aten.zero_", moves},
    Handler{"aten.zeros", moves},
    Handler{"aten.zeros_like", moves},
    Handler{"profiler._record_function_enter_new", marks},
    Handler{"profiler._record_function_exit", marks},
};

}  // namespace

std::span<const Handler> data_calls() { return data_handlers; }

}  // namespace guardbit::emulator::replay
