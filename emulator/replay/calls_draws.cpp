#include <limits>

#include "emulator/operators/draws.hpp"
#include "emulator/operators/memory_order.hpp"
#include "emulator/replay/calls.hpp"

// Random numbers of the CUDA generator, where a call says the generator's state.
namespace guardbit::emulator::replay {
namespace {

namespace ops = operators;

constexpr auto by_name = std::numeric_limits<std::size_t>::max();

std::optional<ops::Draws> draws_of(const Call& call, const Context& context) {
  if (!call.seed || !call.philox_offset) return std::nullopt;
  return ops::Draws{{*call.seed, *call.philox_offset}, context.machine};
}
Answer not_recorded() { return moves_data("draws of a generator whose state is not recorded"); }

constexpr std::string_view how = "Philox 4x32-10, a stream for each thread";

enum class Distribution : std::uint8_t { uniform, normal };

Answer distributed(const Call& call, const Context& context, Distribution distribution,
                   const formats::Format& type, const Dimensions& shape) {
  const auto draws = draws_of(call, context);
  if (!draws) return not_recorded();
  if (!ops::is_working_type(type)) return unmodelled("draws of a type without a model");
  return computed({distribution == Distribution::uniform ? ops::uniform(type, shape, 0, 1, *draws)
                                                         : ops::normal(type, shape, 0, 1, *draws)},
                  std::string(how));
}
template <Distribution distribution>
Answer new_numbers(const Call& call, Context& context) {
  return distributed(call, context, distribution,
                     call.dtype(by_name, "dtype").value_or(formats::fp32),
                     call.integers(0, "size"));
}
template <Distribution distribution>
Answer numbers_like(const Call& call, Context& context) {
  const Tensor& input = call.tensor(0, "self");
  Answer answer = distributed(call, context, distribution,
                              call.dtype(by_name, "dtype").value_or(input.type), input.shape);
  for (auto& result : answer.results) result = ops::from_memory_order(input, *result);
  return answer;
}

Answer integers(const Call& call, Context& context) {
  const auto draws = draws_of(call, context);
  if (!draws) return not_recorded();
  const bool has_low = call.op.starts_with("aten.randint.low");
  const std::size_t size = has_low ? 2 : 1;
  auto result = ops::integers(call.dtype(by_name, "dtype").value_or(formats::int64),
                              call.integers(size, "size"), has_low ? call.integer(0, "low") : 0,
                              call.integer(size - 1, "high"), *draws);
  if (!result) return unmodelled("integers of a range of 2^28 or more");
  return computed({std::move(result)}, std::string(how));
}

Answer bernoulli(const Call& call, Context& context) {
  const auto draws = draws_of(call, context);
  if (!draws) return not_recorded();
  return computed({ops::bernoulli(call.tensor(0, "self"), *draws)}, std::string(how));
}

Answer dropout(const Call& call, Context& context) {
  const auto draws = draws_of(call, context);
  if (!draws) return not_recorded();
  ops::Dropped all = ops::dropout(call.tensor(0, "input"), call.number(1, "p"), *draws);
  return computed({std::move(all.output), std::move(all.mask)}, std::string(how));
}

Answer dropout_gradient(const Call& call, Context&) {
  const Tensor& gradient = call.tensor(0, "grad_output");
  if (!ops::is_working_type(gradient.type)) return unmodelled("a type without a model");
  return computed(
      {ops::dropout_gradient(gradient, call.tensor(1, "mask"), call.number(2, "scale"))},
      "(mask dy) scale");
}

constexpr std::array handlers = {
    Handler{"aten.bernoulli.default", bernoulli},
    Handler{"aten.native_dropout.default", dropout},
    Handler{"aten.native_dropout_backward.default", dropout_gradient},
    Handler{"aten.rand.default", new_numbers<Distribution::uniform>},
    Handler{"aten.rand_like.default", numbers_like<Distribution::uniform>},
    Handler{"aten.randint.default", integers},
    Handler{"aten.randint.low", integers},
    Handler{"aten.randn.default", new_numbers<Distribution::normal>},
    Handler{"aten.randn_like.default", numbers_like<Distribution::normal>},
};

}  // namespace

std::span<const Handler> draw_calls() { return handlers; }

}  // namespace guardbit::emulator::replay
