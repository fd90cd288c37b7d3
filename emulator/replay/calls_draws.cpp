#include <limits>

#include "emulator/operators/draws.hpp"
#include "emulator/operators/memory_order.hpp"
#include "emulator/replay/calls.hpp"
#include "formats/tensors/tensor.hpp"

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

constexpr std::string_view how_drawn = "Philox 4x32-10, a stream for each thread";

enum class Distribution : std::uint8_t { uniform, normal, exponential, bernoulli };

/// The distribution's two numbers: its ends, or mean and deviation; its rate or its probability.
struct Numbers {
  double first = 0, second = 1;
};

Answer drawn(std::optional<Tensor> result, std::int64_t count, const Context& context,
             std::int64_t numbers_of_block = 4) {
  Answer answer = computed({std::move(result)}, std::string(how_drawn));
  answer.drawn = ops::increment_of_draws(count, context.machine, numbers_of_block);
  return answer;
}

Answer distributed(const Call& call, const Context& context, Distribution distribution,
                   const formats::Format& type, const Dimensions& shape, Numbers x = {}) {
  const auto draws = draws_of(call, context);
  if (!draws) return not_recorded();
  const bool is_unit = distribution == Distribution::uniform && x.first == 0 && x.second == 1;
  if (!ops::is_working_type(type) && !(type == formats::fp64 && is_unit))
    return unmodelled("draws of a type without a model");
  const auto numbers = [&] {
    switch (distribution) {
      case Distribution::uniform: return ops::uniform(type, shape, x.first, x.second, *draws);
      case Distribution::normal: return ops::normal(type, shape, x.first, x.second, *draws);
      case Distribution::exponential: return ops::exponential(type, shape, x.first, *draws);
      case Distribution::bernoulli: break;
    }
    return ops::bernoulli(type, shape, x.first, *draws);
  };
  return drawn(numbers(), formats::element_count(shape), context, type == formats::fp64 ? 2 : 4);
}
template <Distribution distribution>
Answer new_numbers(const Call& call, Context& context) {
  return distributed(call, context, distribution,
                     call.dtype(by_name, "dtype").value_or(formats::fp32),
                     call.integers(0, "size"));
}

/// In the order of memory of the tensor that they are like or that they fill.
Answer in_order_of(const Tensor& like, Answer answer) {
  for (auto& result : answer.results) result = ops::from_memory_order(like, *result);
  return answer;
}
template <Distribution distribution>
Answer numbers_like(const Call& call, Context& context) {
  const Tensor& input = call.tensor(0, "self");
  return in_order_of(input,
                     distributed(call, context, distribution,
                                 call.dtype(by_name, "dtype").value_or(input.type), input.shape));
}

Answer filled(const Call& call, const Context& context, Distribution distribution, Numbers x) {
  const Tensor& self = call.tensor(0, "self");
  return in_order_of(self, distributed(call, context, distribution, self.type, self.shape, x));
}
Answer filled_uniformly(const Call& call, Context& context) {
  return filled(call, context, Distribution::uniform,
                {call.number(1, "from", 0), call.number(2, "to", 1)});
}
Answer filled_normally(const Call& call, Context& context) {
  return filled(call, context, Distribution::normal,
                {call.number(1, "mean", 0), call.number(2, "std", 1)});
}
Answer filled_exponentially(const Call& call, Context& context) {
  return filled(call, context, Distribution::exponential, {call.number(1, "lambd", 1), 0});
}
Answer filled_with_choices(const Call& call, Context& context) {
  return filled(call, context, Distribution::bernoulli, {call.number(1, "p", 0.5), 0});
}

Answer integers(const Call& call, Context& context) {
  const auto draws = draws_of(call, context);
  if (!draws) return not_recorded();
  const bool has_low = call.op.starts_with("aten.randint.low");
  const std::size_t size = has_low ? 2 : 1;
  const Dimensions shape = call.integers(size, "size");
  auto result =
      ops::integers(call.dtype(by_name, "dtype").value_or(formats::int64), shape,
                    has_low ? call.integer(0, "low") : 0, call.integer(size - 1, "high"), *draws);
  if (!result) return unmodelled("integers of a range of 2^28 or more");
  return drawn(std::move(result), formats::element_count(shape), context);
}

Answer permutation(const Call& call, Context& context) {
  const auto draws = draws_of(call, context);
  if (!draws) return not_recorded();
  const std::int64_t count = call.integer(0, "n");
  const formats::Format type = call.dtype(by_name, "dtype").value_or(formats::int64);
  if (type != formats::int64 && type != formats::int32)
    return unmodelled("a permutation of another type than int64 and int32");
  auto result = ops::permutation(type, count, *draws);
  if (!result) return unmodelled("a permutation of more than 30,000 elements");
  Answer answer = computed({std::move(result)}, "sorted by random keys");
  answer.drawn = ops::increment_of_permutation(count, context.machine);
  return answer;
}

/// What a call takes that asks for 10 numbers, in fours.
constexpr std::uint64_t drawn_by_bernoulli = 12;

Answer bernoulli(const Call& call, Context& context) {
  const auto draws = draws_of(call, context);
  if (!draws) return not_recorded();
  Answer answer =
      computed({ops::bernoulli(call.tensor(0, "self"), *draws)}, std::string(how_drawn));
  answer.drawn = drawn_by_bernoulli;
  return answer;
}

Answer dropout(const Call& call, Context& context) {
  const auto draws = draws_of(call, context);
  if (!draws) return not_recorded();
  const Tensor& input = call.tensor(0, "input");
  ops::Dropped all = ops::dropout(input, call.number(1, "p"), *draws);
  Answer answer = computed({std::move(all.output), std::move(all.mask)}, std::string(how_drawn));
  answer.drawn = ops::increment_of_dropout(input.count(), context.machine);
  return answer;
}

/// What another operator gives for these operands.
Tensor drawn_by(std::string op, List args, Context& context) {
  Call call;
  call.op = std::move(op);
  call.args = std::move(args);
  const Handler* handler = find_handler(call.op);
  if (handler == nullptr) throw UnknownArguments{"no model of " + call.op};
  const Answer answer = handler->answer(call, context);
  if (answer.results.empty() || !answer.results[0]) throw UnknownArguments{answer.plan};
  return *answer.results[0];
}

/// The greatest ratios of probabilities to exponentially distributed numbers win.
Answer multinomial(const Call& call, Context& context) {
  const auto draws = draws_of(call, context);
  if (!draws) return not_recorded();
  const Tensor& weights = call.tensor(0, "self");
  if (call.integer(1, "num_samples") != 1) return unmodelled("several samples of a row");
  if (!ops::is_working_type(weights.type)) return unmodelled("a type without a model");
  const Tensor numbers =
      ops::from_memory_order(weights, ops::exponential(weights.type, weights.shape, 1, *draws));
  const Tensor ratios = drawn_by("aten.div.Tensor", {Value{weights}, Value{numbers}}, context);
  return drawn(drawn_by("aten.argmax.default",
                        {Value{ratios}, Value{std::int64_t{-1}}, Value{true}}, context),
               weights.count(), context);
}

Answer dropout_gradient(const Call& call, Context&) {
  const Tensor& gradient = call.tensor(0, "grad_output");
  if (!ops::is_working_type(gradient.type)) return unmodelled("a type without a model");
  return computed(
      {ops::dropout_gradient(gradient, call.tensor(1, "mask"), call.number(2, "scale"))},
      "(mask dy) scale");
}

constexpr std::array draw_handlers = {
    Handler{"aten.bernoulli.default", bernoulli},
    Handler{"aten.bernoulli_.float", filled_with_choices},
    Handler{"aten.exponential_.default", filled_exponentially},
    Handler{"aten.multinomial.default", multinomial},
    Handler{"aten.native_dropout.default", dropout},
    Handler{"aten.native_dropout_backward.default", dropout_gradient},
    Handler{"aten.normal_.default", filled_normally},
    Handler{"aten.rand.default", new_numbers<Distribution::uniform>},
    Handler{"aten.rand_like.default", numbers_like<Distribution::uniform>},
    Handler{"aten.randint.default", integers},
    Handler{"aten.randint.low", integers},
    Handler{"aten.randn.default", new_numbers<Distribution::normal>},
    Handler{"aten.randn_like.default", numbers_like<Distribution::normal>},
    Handler{"aten.randperm.default", permutation},
    Handler{"aten.uniform_.default", filled_uniformly},
};

}  // namespace

std::span<const Handler> draw_calls() { return draw_handlers; }

}  // namespace guardbit::emulator::replay
