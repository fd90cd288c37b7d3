#include "emulator/operators/softmax.hpp"
#include "emulator/replay/calls.hpp"

// softmax, log_softmax and their gradients.
namespace guardbit::emulator::replay {
namespace {

namespace ops = operators;

Answer answered(ops::SoftmaxResult all) {
  return computed({std::move(all.result)}, std::move(all.plan));
}

template <bool is_logarithm>
Answer forward(const Call& call, Context& context) {
  const Tensor& input = floating_or_double(call.tensor(0, "self"));
  const bool widens = call.boolean(2, "half_to_float", false);
  return answered(ops::softmax(input, call.integer(1, "dim"), is_logarithm,
                               widens ? formats::fp32 : input.type, context.threads));
}

/// softmax, with zeros for rows that hide everything.
Answer safe(const Call& call, Context& context) {
  const Tensor& input = floating(call.tensor(0, "self"));
  if (call.dtype(2, "dtype").value_or(input.type) != input.type)
    return unmodelled("a softmax that converts its input");
  ops::SoftmaxResult all =
      ops::softmax(input, call.integer(1, "dim"), false, input.type, context.threads);
  all.result = ops::without_hidden_rows(input, call.integer(1, "dim"), all.result);
  return answered(std::move(all));
}

template <bool is_logarithm>
Answer backward(const Call& call, Context& context) {
  const Tensor& gradient = floating_or_double(call.tensor(0, "grad_output"));
  const Tensor& output = floating_or_double(call.tensor(1, "output"));
  if (output.type != gradient.type) return unmodelled("output and gradient of different types");
  return answered(ops::softmax_gradient(gradient, output, call.integer(2, "dim"), is_logarithm,
                                        call.dtype(3, "input_dtype").value_or(gradient.type),
                                        context.threads));
}

constexpr std::array softmax_handlers = {
    Handler{"aten._log_softmax", forward<true>},
    Handler{"aten._log_softmax_backward_data", backward<true>},
    Handler{"aten._safe_softmax", safe},
    Handler{"aten._softmax", forward<false>},
    Handler{"aten._softmax_backward_data", backward<false>},
};

}  // namespace

std::span<const Handler> softmax_calls() { return softmax_handlers; }

}  // namespace guardbit::emulator::replay
