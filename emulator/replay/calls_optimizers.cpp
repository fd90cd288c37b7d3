#include <utility>

#include "emulator/operators/optimizers.hpp"
#include "emulator/replay/calls.hpp"

// Fused optimizers and the scaler of automatic mixed precision.
namespace guardbit::emulator::replay {
namespace {

using operators::OptimizerParameters;
using operators::OptimizerState;

/// A tensor of one number, as a number.
float first_number(const Tensor& tensor) {
  if (tensor.count() != 1) throw UnknownArguments{"a tensor of one number is needed"};
  return operators::numbers_of(tensor)[0];
}

/// The lists of a call, each with a tensor for every parameter; but for the first ones, which are
/// required, they may be empty.
struct Lists {
  std::vector<std::string> names;
  std::vector<std::vector<Tensor>> tensors;
  std::size_t required = 0;

  bool is_absent(std::size_t k) const { return k >= required && tensors[k].empty(); }
};

std::vector<Tensor> optional_list(const Call& call, std::size_t position, std::string_view name) {
  return call.find(position, name) == nullptr ? std::vector<Tensor>()
                                              : call.tensors(position, name);
}

/// The step of each parameter; `lists` are parameters, gradients and states in the order of
/// OptimizerState.
template <class Step>
Answer each_parameter(const Call& call, const Lists& lists, OptimizerParameters parameters,
                      const std::vector<Tensor>& steps, const Step& step) {
  if (const Tensor* found = call.optional_tensor(99, "found_inf");
      found != nullptr && first_number(*found) == 1)
    return moves_data("an infinity was found: nothing changes");
  if (const Tensor* scale = call.optional_tensor(99, "grad_scale"))
    parameters.grad_scale = first_number(*scale);
  const std::size_t count = lists.tensors[0].size();
  Answer answer;
  std::array<std::vector<std::optional<Tensor>>, 5> results;
  for (std::size_t i = 0; i < count; ++i) {
    std::array<std::optional<Tensor>, 5> state;
    for (std::size_t k = 0; k < lists.tensors.size(); ++k) {
      if (lists.is_absent(k)) continue;
      if (lists.tensors[k].size() != count) throw UnknownArguments{"lists of different lengths"};
      state[k] = lists.tensors[k][i];
      if (state[k]->count() != state[0]->count() || !operators::is_working_type(state[k]->type))
        throw UnknownArguments{"tensors of one parameter that do not fit"};
    }
    if (!steps.empty()) parameters.step = first_number(steps.at(std::min(i, steps.size() - 1)));
    OptimizerState after =
        step(OptimizerState{*state[0], *state[1], state[2], state[3], state[4]}, parameters);
    results[0].emplace_back(std::move(after.parameter));
    results[1].emplace_back(std::move(after.gradient));
    results[2].push_back(std::move(after.first));
    results[3].push_back(std::move(after.second));
    results[4].push_back(std::move(after.greatest));
  }
  for (std::size_t k = 0; k < lists.tensors.size(); ++k) {
    if (lists.is_absent(k)) continue;
    // A gradient changes only where a scale was taken out of it.
    if (k == 1 && !parameters.grad_scale && !call.written.contains("grads")) continue;
    answer.changed.push_back(lists.names[k]);
    answer.results.insert(answer.results.end(), results[k].begin(), results[k].end());
  }
  return answer;
}

double learning_rate(const Call& call, std::size_t position) {
  const Value* lr = call.find(position, "lr");
  if (lr != nullptr && lr->tensor() != nullptr) return first_number(*lr->tensor());
  return call.number(position, "lr");
}

Answer adam(const Call& call, Context& context) {
  OptimizerParameters parameters;
  parameters.lr = learning_rate(call, 6);
  parameters.beta1 = call.number(7, "beta1");
  parameters.beta2 = call.number(8, "beta2");
  parameters.weight_decay = call.number(9, "weight_decay");
  parameters.eps = call.number(10, "eps");
  parameters.maximize = call.boolean(12, "maximize", false);
  parameters.is_decoupled = call.op.find("adamw") != std::string::npos;
  const bool amsgrad = call.boolean(11, "amsgrad", false);
  Lists lists{{"self", "grads", "exp_avgs", "exp_avg_sqs", "max_exp_avg_sqs"},
              {call.tensors(0, "self"), call.tensors(1, "grads"), call.tensors(2, "exp_avgs"),
               call.tensors(3, "exp_avg_sqs"),
               amsgrad ? call.tensors(4, "max_exp_avg_sqs") : std::vector<Tensor>()},
              amsgrad ? 5U : 4U};
  Answer answer = each_parameter(call, lists, parameters, call.tensors(5, "state_steps"),
                                 [&](const OptimizerState& state, const OptimizerParameters& with) {
                                   return operators::adam_step(state, with, context.threads);
                                 });
  answer.plan =
      parameters.is_decoupled
          ? "p = fma(-(lr wd), p, p); means by two fma; p - (step m) / (sqrt(v) / c + eps)"
          : "g + p wd, some contracted; means by two fma; p - (step m) / (sqrt(v) / c + eps)";
  return answer;
}

Answer sgd(const Call& call, Context& context) {
  OptimizerParameters parameters;
  parameters.weight_decay = call.number(3, "weight_decay");
  parameters.momentum = call.number(4, "momentum");
  parameters.lr = learning_rate(call, 5);
  parameters.dampening = call.number(6, "dampening");
  parameters.nesterov = call.boolean(7, "nesterov", false);
  parameters.maximize = call.boolean(8, "maximize", false);
  parameters.is_first_step = call.boolean(9, "is_first_step", false);
  Lists lists{{"self", "grads", "momentum_buffer_list"},
              {call.tensors(0, "self"), call.tensors(1, "grads"),
               optional_list(call, 2, "momentum_buffer_list")},
              parameters.momentum != 0 ? 3U : 2U};
  Answer answer = each_parameter(call, lists, parameters, {},
                                 [&](const OptimizerState& state, const OptimizerParameters& with) {
                                   return operators::sgd_step(state, with, context.threads);
                                 });
  answer.plan = "g = fma(wd, p, g); fma(1 - dampening, g, momentum buffer); fma(-lr, buffer, p)";
  return answer;
}

Answer adagrad(const Call& call, Context& context) {
  OptimizerParameters parameters;
  parameters.lr = learning_rate(call, 4);
  parameters.lr_decay = call.number(5, "lr_decay");
  parameters.weight_decay = call.number(6, "weight_decay");
  parameters.eps = call.number(7, "eps");
  parameters.maximize = call.boolean(8, "maximize", false);
  Lists lists{{"self", "grads", "state_sums"},
              {call.tensors(0, "self"), call.tensors(1, "grads"), call.tensors(2, "state_sums")},
              3};
  Answer answer = each_parameter(call, lists, parameters, call.tensors(3, "state_steps"),
                                 [&](const OptimizerState& state, const OptimizerParameters& with) {
                                   return operators::adagrad_step(state, with, context.threads);
                                 });
  answer.plan = "sum = fma(g, g, sum); p - (lr g) / (sqrt(sum) + eps) in fp64";
  return answer;
}

Answer unscale(const Call& call, Context&) {
  const float inverse = first_number(call.tensor(2, "inv_scale"));
  bool has_infinity = first_number(call.tensor(1, "found_inf")) == 1;
  Answer answer;
  for (const Tensor& gradient : call.tensors(0, "self"))
    answer.results.emplace_back(operators::unscaled_gradient(gradient, inverse, has_infinity));
  answer.results.emplace_back(operators::tensor_of_numbers(
      formats::fp32, call.tensor(1, "found_inf").shape, std::array{has_infinity ? 1.0F : 0.0F}));
  answer.changed = {"self", "found_inf"};
  answer.plan = "each gradient times the inverse scale";
  return answer;
}

Answer update_scale(const Call& call, Context&) {
  const operators::LossScale after = operators::updated_loss_scale(
      {first_number(call.tensor(0, "self")),
       static_cast<std::int32_t>(operators::integers_of(call.tensor(1, "growth_tracker")).at(0))},
      first_number(call.tensor(2, "found_inf")) != 0, call.number(3, "scale_growth_factor"),
      call.number(4, "scale_backoff_factor"), call.integer(5, "growth_interval"));
  Answer answer =
      computed({operators::tensor_of_numbers(formats::fp32, call.tensor(0, "self").shape,
                                             std::array{after.scale})},
               "backed off after an infinity, grown after enough steps without");
  const Tensor& tracker = call.tensor(1, "growth_tracker");
  answer.also_changed.emplace_back(
      "growth_tracker",
      operators::tensor_of_integers(tracker.type, tracker.shape,
                                    std::array<std::int64_t, 1>{after.growth_tracker}));
  return answer;
}

constexpr std::array optimizer_handlers = {
    Handler{"aten._amp_foreach_non_finite_check_and_unscale_", unscale},
    Handler{"aten._amp_update_scale_", update_scale},
    Handler{"aten._fused_adagrad_", adagrad},
    Handler{"aten._fused_adam_", adam},
    Handler{"aten._fused_adamw_", adam},
    Handler{"aten._fused_sgd_", sgd},
};

}  // namespace

std::span<const Handler> optimizer_calls() { return optimizer_handlers; }

}  // namespace guardbit::emulator::replay
