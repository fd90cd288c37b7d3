#include <array>
#include <limits>
#include <span>
#include <vector>

#include "emulator/operators/pointwise/pointwise.hpp"
#include "emulator/replay/calls.hpp"

// Gated linear units, whose operand holds values and gates as halves, and logits.
namespace guardbit::emulator::replay {
namespace {

namespace ops = operators;

Tensor pointwise(std::string_view name, std::span<const Tensor* const> operands,
                 const ops::Parameters& parameters, const Context& context) {
  return ops::run_pointwise(*ops::find_pointwise(name), operands, parameters, operands[0]->type,
                            context.threads);
}

/// A tensor as runs that lie together, the halves of a dimension in turn.
struct Halves {
  std::size_t runs = 1, run = 1;
  Dimensions shape;

  Halves(const Tensor& tensor, std::int64_t dimension) : shape(tensor.shape) {
    const auto d = ops::dimension_of(tensor, dimension);
    if (shape.empty() || shape[d] % 2 != 0) throw UnknownArguments{"a dimension without halves"};
    shape[d] /= 2;
    for (std::size_t i = 0; i < shape.size(); ++i)
      (i < d ? runs : run) *= static_cast<std::size_t>(shape[i]);
  }
  Tensor half(const Tensor& tensor, std::size_t which) const {
    const std::vector<float> all = ops::numbers_of(tensor);
    std::vector<float> own;
    for (std::size_t r = 0; r < runs; ++r) {
      const auto part = std::span(all).subspan((2 * r + which) * run, run);
      own.insert(own.end(), part.begin(), part.end());
    }
    return ops::tensor_of_numbers(tensor.type, shape, own);
  }
  Tensor joined(const Tensor& whole, const Tensor& first, const Tensor& second) const {
    const std::vector<float> a = ops::numbers_of(first), b = ops::numbers_of(second);
    std::vector<float> all;
    for (std::size_t r = 0; r < runs; ++r) {
      for (const auto* part : {&a, &b}) {
        const auto own = std::span(*part).subspan(r * run, run);
        all.insert(all.end(), own.begin(), own.end());
      }
    }
    return ops::tensor_of_numbers(whole.type, whole.shape, all);
  }
};

Answer glu(const Call& call, Context& context) {
  const Tensor& input = floating(call.tensor(0, "self"));
  const Halves halves(input, call.integer(1, "dim", -1));
  const Tensor x = halves.half(input, 0), gate = halves.half(input, 1);
  return computed(
      {pointwise("glu", std::array{&x, &gate}, {.numbers = {}, .type = input.type}, context)},
      "x (1 / (1 + expf(-gate)))");
}

Answer glu_gradient(const Call& call, Context& context) {
  const Tensor& gradient = floating(call.tensor(0, "grad_output"));
  const Tensor& input = floating(call.tensor(1, "self"));
  const Halves halves(input, call.integer(2, "dim"));
  if (gradient.shape != halves.shape || !(gradient.type == input.type))
    return unmodelled("a gradient of another shape or type");
  const Tensor x = halves.half(input, 0), gate = halves.half(input, 1);
  const ops::Parameters parameters{.numbers = {}, .type = input.type};
  const Tensor of_x = pointwise("glu_backward", std::array{&gradient, &gate}, parameters, context);
  const Tensor of_gate =
      pointwise("glu_backward_gate", std::array{&gradient, &x, &gate}, parameters, context);
  return computed({halves.joined(input, of_x, of_gate)}, "s dy; (((1 - s) s) dy) x");
}

/// The range that logits are kept in, and what a gradient is outside of it.
ops::Parameters range_of(const Call& call, std::size_t position, bool is_gradient) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  ops::Parameters parameters{.numbers = {}, .type = call.tensor(0, "self").type};
  const double eps = call.find(position, "eps") == nullptr ? -1 : call.number(position, "eps");
  if (eps < 0) {
    parameters.numbers = {-infinity, infinity, 0};
    if (is_gradient) parameters.numbers = {0, 1, std::numeric_limits<float>::quiet_NaN()};
  } else {
    const auto low = static_cast<float>(eps);
    parameters.numbers = {low, 1 - low, 0};
  }
  return parameters;
}

Answer logit(const Call& call, Context& context) {
  const Tensor& input = floating(call.tensor(0, "self"));
  return computed({pointwise("logit", std::array{&input}, range_of(call, 1, false), context)},
                  "logf(z / (1 - z))");
}
Answer logit_gradient(const Call& call, Context& context) {
  const Tensor& gradient = floating(call.tensor(0, "grad_output"));
  const Tensor& input = floating(call.tensor(1, "self"));
  if (gradient.shape != input.shape || !(gradient.type == input.type))
    return unmodelled("a gradient of another shape or type");
  return computed({pointwise("logit_backward", std::array{&gradient, &input},
                             range_of(call, 2, true), context)},
                  "dy / (x (1 - x))");
}

constexpr std::array gate_handlers = {
    Handler{"aten.glu", glu},
    Handler{"aten.glu_backward", glu_gradient},
    Handler{"aten.logit", logit},
    Handler{"aten.logit_backward", logit_gradient},
};

}  // namespace

std::span<const Handler> gate_calls() { return gate_handlers; }

}  // namespace guardbit::emulator::replay
