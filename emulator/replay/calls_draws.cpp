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

enum class Distribution : std::uint8_t {
  uniform,
  normal,
  exponential,
  bernoulli,
  log_normal,
  cauchy,
  geometric
};

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
  if (!ops::is_working_type(type) && type != formats::fp64)
    return unmodelled("draws of a type without a model");
  const bool is_unit = distribution == Distribution::uniform && x.first == 0 && x.second == 1;
  const bool is_measured =
      is_unit || distribution == Distribution::normal || distribution == Distribution::bernoulli;
  if (type == formats::fp64 && !is_measured)
    return unmodelled("draws of FP64 of this distribution, not measured");
  const auto numbers = [&] {
    switch (distribution) {
      case Distribution::uniform: return ops::uniform(type, shape, x.first, x.second, *draws);
      case Distribution::normal: return ops::normal(type, shape, x.first, x.second, *draws);
      case Distribution::exponential: return ops::exponential(type, shape, x.first, *draws);
      case Distribution::log_normal: return ops::log_normal(type, shape, x.first, x.second, *draws);
      case Distribution::cauchy: return ops::cauchy(type, shape, x.first, x.second, *draws);
      case Distribution::geometric: return ops::geometric(type, shape, x.first, *draws);
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

/// In the order in which the tensor is filled that they are like, or that they fill.
Answer in_order_of(const Tensor& like, Answer answer) {
  for (auto& result : answer.results) result = ops::from_iteration_order(like, *result);
  return answer;
}
/// A new tensor like the first operand, as the call's memory_format says; nothing in it.
Tensor new_like(const Call& call) {
  Tensor like = call.tensor(0, "self");
  const std::string format = call.text(by_name, "memory_format", "torch.preserve_format");
  if (format.find("channels_last") != std::string::npos) {
    like.stride = ops::channels_last_stride(like.shape);
  } else if (format.find("contiguous_format") != std::string::npos) {
    like.stride = ops::contiguous_stride(like.shape);
  } else {
    like.stride = ops::dense_stride_like(like);
  }
  return like;
}
template <Distribution distribution>
Answer numbers_like(const Call& call, Context& context) {
  const Tensor like = new_like(call);
  return in_order_of(like,
                     distributed(call, context, distribution,
                                 call.dtype(by_name, "dtype").value_or(like.type), like.shape));
}

/// What a call names one of a distribution's numbers; no name: the distribution has but one.
struct Parameter {
  std::string_view name;
  std::optional<double> usual;
};
constexpr std::array<Parameter, 2> parameters_of(Distribution distribution) {
  switch (distribution) {
    case Distribution::uniform: return {{{"from", 0}, {"to", 1}}};
    case Distribution::normal: return {{{"mean", 0}, {"std", 1}}};
    case Distribution::exponential: return {{{"lambd", 1}, {}}};
    case Distribution::log_normal: return {{{"mean", 1}, {"std", 2}}};
    case Distribution::cauchy: return {{{"median", 0}, {"sigma", 1}}};
    case Distribution::geometric: return {{{"p", {}}, {}}};
    case Distribution::bernoulli: break;
  }
  return {{{"p", 0.5}, {}}};
}

template <Distribution distribution>
Answer filled(const Call& call, Context& context) {
  constexpr std::array<Parameter, 2> parameters = parameters_of(distribution);
  const auto number = [&](std::size_t i) {
    const auto& [name, usual] = parameters.at(i);
    if (name.empty()) return 0.0;
    return usual ? call.number(i + 1, name, *usual) : call.number(i + 1, name);
  };
  const Tensor& self = call.tensor(0, "self");
  return in_order_of(self, distributed(call, context, distribution, self.type, self.shape,
                                       {number(0), number(1)}));
}
/// In rows, however the tensor lies that says the shape.
Answer choices(const Call& call, Context& context) {
  const Tensor& self = call.tensor(0, "self");
  return distributed(call, context, Distribution::bernoulli, self.type, self.shape,
                     {call.number(1, "p"), 0});
}

struct Range {
  std::int64_t low = 0, high = 0;
};
Answer drawn_integers(const Call& call, const Context& context, const formats::Format& type,
                      const Dimensions& shape, Range range) {
  const auto draws = draws_of(call, context);
  if (!draws) return not_recorded();
  auto result = ops::integers(type, shape, range.low, range.high, *draws);
  if (!result)
    return unmodelled("integers of a range of 2^28 or more, or that the type does not have");
  return drawn(std::move(result), formats::element_count(shape), context);
}
Answer integers(const Call& call, Context& context) {
  const bool has_low = call.op.starts_with("aten.randint.low");
  const std::size_t size = has_low ? 2 : 1;
  return drawn_integers(call, context, call.dtype(by_name, "dtype").value_or(formats::int64),
                        call.integers(size, "size"),
                        {has_low ? call.integer(0, "low") : 0, call.integer(size - 1, "high")});
}
Answer integers_like(const Call& call, Context& context) {
  const Tensor like = new_like(call);
  const bool has_low = call.op.find("low") != std::string::npos;
  return in_order_of(
      like, drawn_integers(
                call, context, call.dtype(by_name, "dtype").value_or(like.type), like.shape,
                {has_low ? call.integer(1, "low") : 0, call.integer(has_low ? 2 : 1, "high")}));
}
Answer filled_with_integers(const Call& call, Context& context) {
  const Tensor& self = call.tensor(0, "self");
  const bool has_from = call.op.ends_with("from");
  const Value* last = has_from ? call.find(2, "to") : call.find(1, "to");
  if (last == nullptr || last->is_none()) return unmodelled("integers without an upper end");
  return in_order_of(self, drawn_integers(call, context, self.type, self.shape,
                                          {has_from ? call.integer(1, "from") : 0,
                                           call.integer(has_from ? 2 : 1, "to")}));
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
  Answer answer = computed({ops::bernoulli(floating_or_double(call.tensor(0, "self")), *draws)},
                           std::string(how_drawn));
  answer.drawn = drawn_by_bernoulli;
  return answer;
}

Answer dropout(const Call& call, Context& context) {
  const auto draws = draws_of(call, context);
  if (!draws) return not_recorded();
  const Tensor& input = floating_or_double(call.tensor(0, "input"));
  const double probability = call.number(1, "p");
  if (!call.boolean(2, "train", true) || probability == 1)
    return unmodelled("a dropout that draws nothing");
  ops::Dropped all = ops::dropout(input, probability, *draws);
  Answer answer = computed({std::move(all.output), std::move(all.mask)}, std::string(how_drawn));
  answer.drawn = ops::increment_of_dropout(input.count(), context.machine);
  return answer;
}

/// What it gives, and what it writes to the noise.
Answer noisy_relu(const Call& call, Context& context) {
  const auto draws = draws_of(call, context);
  if (!draws) return not_recorded();
  const Tensor& input = floating_or_double(call.tensor(0, "self"));
  if (!call.boolean(4, "training", false)) return unmodelled("a noisy relu without noise");
  const Tensor& noise = call.tensor(1, "noise");
  if (noise.shape != input.shape || noise.type != input.type || !ops::is_contiguous(noise))
    return unmodelled("noise that does not lie in rows");
  ops::NoisyRelu all = ops::noisy_relu(input, call.number(2, "lower", 1. / 8),
                                       call.number(3, "upper", 1. / 3), *draws);
  Answer answer =
      drawn(std::move(all.output), input.count(), context, input.type == formats::fp64 ? 2 : 4);
  answer.also_changed.emplace_back("noise", std::move(all.noise));
  return answer;
}

/// What another operator gives for these operands.
Tensor drawn_by(std::string op, List args, Context& context, std::size_t result = 0) {
  Call call;
  call.op = std::move(op);
  call.args = std::move(args);
  const Handler* handler = find_handler(call.op);
  if (handler == nullptr) throw UnknownArguments{"no model of " + call.op};
  const Answer answer = handler->answer(call, context);
  if (answer.results.size() <= result || !answer.results[result])
    throw UnknownArguments{answer.plan};
  return *answer.results[result];
}

/// The greatest ratios of probabilities to exponentially distributed numbers win.
Answer multinomial(const Call& call, Context& context) {
  const auto draws = draws_of(call, context);
  if (!draws) return not_recorded();
  const Tensor& weights = call.tensor(0, "self");
  const std::int64_t samples = call.integer(1, "num_samples");
  if (samples != 1 && call.boolean(2, "replacement", false)) {
    if (weights.type != formats::fp32)
      return unmodelled("several samples of a row with replacement, of another type than FP32");
    const Tensor shares = ops::shares_of_rows(weights);
    const Tensor sums =
        drawn_by("aten.cumsum.default", {Value{shares}, Value{std::int64_t{-1}}}, context);
    Answer answer = computed({ops::places_with_replacement(shares, sums, samples, *draws)},
                             "a search of the running sums for each sample");
    answer.drawn = ops::drawn_with_replacement;
    return answer;
  }
  Tensor like = floating_or_double(weights);
  like.stride = ops::dense_stride_like(weights);
  const Tensor numbers =
      ops::from_iteration_order(like, ops::exponential(weights.type, weights.shape, 1, *draws));
  const Tensor ratios = drawn_by("aten.div.Tensor", {Value{weights}, Value{numbers}}, context);
  Tensor chosen = samples == 1
                      ? drawn_by("aten.argmax.default",
                                 {Value{ratios}, Value{std::int64_t{-1}}, Value{true}}, context)
                      : drawn_by("aten.topk.default", {Value{ratios}, Value{samples}}, context, 1);
  return drawn(std::move(chosen), weights.count(), context, weights.type == formats::fp64 ? 2 : 4);
}

Answer dropout_gradient(const Call& call, Context&) {
  const Tensor& gradient = floating_or_double(call.tensor(0, "grad_output"));
  return computed(
      {ops::dropout_gradient(gradient, call.tensor(1, "mask"), call.number(2, "scale"))},
      "(mask dy) scale");
}

constexpr std::array draw_handlers = {
    Handler{"aten.bernoulli.default", bernoulli},
    Handler{"aten.bernoulli.p", choices},
    Handler{"aten.bernoulli_.float", filled<Distribution::bernoulli>},
    Handler{"aten.cauchy_.default", filled<Distribution::cauchy>},
    Handler{"aten.exponential_.default", filled<Distribution::exponential>},
    Handler{"aten.geometric_.default", filled<Distribution::geometric>},
    Handler{"aten.log_normal_.default", filled<Distribution::log_normal>},
    Handler{"aten.multinomial.default", multinomial},
    Handler{"aten.native_dropout.default", dropout},
    Handler{"aten.native_dropout_backward.default", dropout_gradient},
    Handler{"aten.normal_.default", filled<Distribution::normal>},
    Handler{"aten.rand.default", new_numbers<Distribution::uniform>},
    Handler{"aten.rand_like.default", numbers_like<Distribution::uniform>},
    Handler{"aten.randint.default", integers},
    Handler{"aten.randint.low", integers},
    Handler{"aten.randint_like.default", integers_like},
    Handler{"aten.randint_like.low_dtype", integers_like},
    Handler{"aten.randn.default", new_numbers<Distribution::normal>},
    Handler{"aten.randn_like.default", numbers_like<Distribution::normal>},
    Handler{"aten.random_.from", filled_with_integers},
    Handler{"aten.random_.to", filled_with_integers},
    Handler{"aten.randperm.default", permutation},
    Handler{"aten.rrelu_with_noise", noisy_relu},
    Handler{"aten.uniform_.default", filled<Distribution::uniform>},
};

}  // namespace

std::span<const Handler> draw_calls() { return draw_handlers; }

}  // namespace guardbit::emulator::replay
