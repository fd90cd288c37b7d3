#include "emulator/operators/layers/recurrent.hpp"
#include "emulator/operators/reductions.hpp"
#include "emulator/replay/calls.hpp"

// Cells of LSTM and GRU in one kernel.
namespace guardbit::emulator::replay {
namespace {

namespace ops = operators;

constexpr std::string_view by_steps = "one kernel a step";

ops::GateSums sums_of(const Call& call) {
  return {.input = floating(call.tensor(0, "input_gates")),
          .hidden = floating(call.tensor(1, "hidden_gates")),
          .input_bias = call.optional_tensor(3, "input_bias"),
          .hidden_bias = call.optional_tensor(4, "hidden_bias")};
}

Tensor over_rows(const Tensor& gradient, Context& context) {
  return ops::sum(gradient, {.dimensions = {0}, .type = {}, .machine = context.machine}).result;
}

Answer lstm(const Call& call, Context&) {
  ops::LstmCell all = ops::lstm_cell(sums_of(call), floating(call.tensor(2, "cx")));
  return computed({std::move(all.hidden), std::move(all.cell), std::move(all.gates)},
                  std::string(by_steps));
}

Answer lstm_gradients(const Call& call, Context& context) {
  ops::LstmGradients all = ops::lstm_cell_gradients(
      call.optional_tensor(0, "grad_hy"), call.optional_tensor(1, "grad_cy"),
      floating(call.tensor(2, "cx")), floating(call.tensor(3, "cy")),
      floating(call.tensor(4, "workspace")));
  std::vector<std::optional<Tensor>> results = {all.gates, std::move(all.cell)};
  if (call.boolean(5, "has_bias", false)) results.emplace_back(over_rows(all.gates, context));
  return computed(std::move(results), std::string(by_steps));
}

Answer gru(const Call& call, Context&) {
  ops::GruCell all = ops::gru_cell(sums_of(call), floating(call.tensor(2, "hx")));
  return computed({std::move(all.hidden), std::move(all.kept)}, std::string(by_steps));
}

Answer gru_gradients(const Call& call, Context& context) {
  ops::GruGradients all = ops::gru_cell_gradients(floating(call.tensor(0, "grad_hy")),
                                                  floating(call.tensor(1, "workspace")));
  std::vector<std::optional<Tensor>> results = {all.input, all.hidden, std::move(all.state)};
  if (call.boolean(2, "has_bias", false)) {
    results.emplace_back(over_rows(all.input, context));
    results.emplace_back(over_rows(all.hidden, context));
  }
  return computed(std::move(results), std::string(by_steps));
}

constexpr std::array recurrent_handlers = {
    Handler{"aten._thnn_fused_gru_cell", gru},
    Handler{"aten._thnn_fused_gru_cell_backward", gru_gradients},
    Handler{"aten._thnn_fused_lstm_cell", lstm},
    Handler{"aten._thnn_fused_lstm_cell_backward_impl", lstm_gradients},
};

}  // namespace

std::span<const Handler> recurrent_calls() { return recurrent_handlers; }

}  // namespace guardbit::emulator::replay
