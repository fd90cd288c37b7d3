#include <array>
#include <cstddef>
#include <limits>
#include <span>
#include <vector>

#include "emulator/operators/pointwise/pointwise.hpp"
#include "emulator/operators/pointwise/pointwise_doubles.hpp"
#include "emulator/replay/calls.hpp"

// Gated linear units, whose operand holds values and gates as halves, and logits.
namespace guardbit::emulator::replay {
namespace {

namespace ops = operators;

/// The range that logits are kept in, and what a gradient is outside of it.
using Numbers = std::array<double, 3>;

Tensor pointwise(std::string_view name, std::span<const Tensor* const> operands,
                 const Numbers& numbers, const Context& context) {
  const formats::Format& type = operands[0]->type;
  if (type == formats::fp64) {
    const ops::DoubleParameters parameters = {numbers[0], numbers[1], numbers[2]};
    return ops::run_doubles(*ops::find_double_operator(name), operands, parameters, type,
                            context.threads);
  }
  ops::Parameters parameters{.numbers = {}, .type = type};
  for (std::size_t i = 0; i < numbers.size(); ++i)
    parameters.numbers[i] = static_cast<float>(numbers[i]);
  return ops::run_pointwise(*ops::find_pointwise(name), operands, parameters, type,
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
    const std::size_t bytes = run * static_cast<std::size_t>(tensor.element_bytes());
    std::vector<std::byte> own;
    for (std::size_t r = 0; r < runs; ++r) append(own, tensor, 2 * r + which, bytes);
    return ops::tensor_of_bytes(tensor.type, shape, ops::contiguous_stride(shape), std::move(own));
  }
  Tensor joined(const Tensor& whole, const Tensor& first, const Tensor& second) const {
    const std::size_t bytes = run * static_cast<std::size_t>(whole.element_bytes());
    std::vector<std::byte> all;
    for (std::size_t r = 0; r < runs; ++r) {
      append(all, first, r, bytes);
      append(all, second, r, bytes);
    }
    return ops::tensor_of_bytes(whole.type, whole.shape, ops::contiguous_stride(whole.shape),
                                std::move(all));
  }

 private:
  /// The run with that number.
  static void append(std::vector<std::byte>& to, const Tensor& from, std::size_t number,
                     std::size_t bytes) {
    const auto own = from.bytes.subspan(number * bytes, bytes);
    to.insert(to.end(), own.begin(), own.end());
  }
};

Answer glu(const Call& call, Context& context) {
  const Tensor& input = floating_or_double(call.tensor(0, "self"));
  const Halves halves(input, call.integer(1, "dim", -1));
  const Tensor x = halves.half(input, 0), gate = halves.half(input, 1);
  return computed({pointwise("glu", std::array{&x, &gate}, {}, context)},
                  "x (1 / (1 + expf(-gate)))");
}

Answer glu_gradient(const Call& call, Context& context) {
  const Tensor& gradient = floating_or_double(call.tensor(0, "grad_output"));
  const Tensor& input = floating_or_double(call.tensor(1, "self"));
  const Halves halves(input, call.integer(2, "dim"));
  if (gradient.shape != halves.shape || !(gradient.type == input.type))
    return unmodelled("a gradient of another shape or type");
  const Tensor x = halves.half(input, 0), gate = halves.half(input, 1);
  const Tensor of_x = pointwise("glu_backward", std::array{&gradient, &gate}, {}, context);
  const Tensor of_gate =
      pointwise("glu_backward_gate", std::array{&gradient, &x, &gate}, {}, context);
  return computed({halves.joined(input, of_x, of_gate)}, "s dy; (((1 - s) s) dy) x");
}

Numbers range_of(const Call& call, std::size_t position, bool is_gradient) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const double eps = call.find(position, "eps") == nullptr ? -1 : call.number(position, "eps");
  if (eps < 0)
    return is_gradient ? Numbers{0, 1, std::numeric_limits<double>::quiet_NaN()}
                       : Numbers{-infinity, infinity, 0};
  if (call.tensor(0, "self").type == formats::fp64) return {eps, 1 - eps, 0};
  const auto low = static_cast<float>(eps);
  return {low, 1 - low, 0};
}

Answer logit(const Call& call, Context& context) {
  const Tensor& input = floating_or_double(call.tensor(0, "self"));
  return computed({pointwise("logit", std::array{&input}, range_of(call, 1, false), context)},
                  "logf(z / (1 - z))");
}
Answer logit_gradient(const Call& call, Context& context) {
  const Tensor& gradient = floating_or_double(call.tensor(0, "grad_output"));
  const Tensor& input = floating_or_double(call.tensor(1, "self"));
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
