#include "emulator/operators/losses.hpp"
#include "emulator/operators/margin_losses.hpp"
#include "emulator/replay/calls.hpp"

// Losses and their gradients.
namespace guardbit::emulator::replay {
namespace {

namespace ops = operators;
using LossKind = ops::ElementLoss::Kind;

ops::LossReduction reduction_of(const Call& call, std::size_t position) {
  const std::int64_t number = call.integer(position, "reduction", 1);
  if (number < 0 || number > 2) throw UnknownArguments{"argument reduction: none of 0, 1, 2"};
  return static_cast<ops::LossReduction>(number);
}

Answer loss(const Call& call, Context& context, const ops::ElementLoss& loss,
            std::size_t reduction) {
  const Tensor& input = floating_or_double(call.tensor(0, "self"));
  const Tensor& target = floating_or_double(call.tensor(1, "target"));
  if (input.shape != target.shape || input.type != target.type)
    return unmodelled("input and target of different shapes or types");
  ops::LossResult all = ops::element_loss(loss, input, target, reduction_of(call, reduction),
                                          context.machine, context.threads);
  return computed({std::move(all.loss)}, std::move(all.plan));
}
Answer gradient(const Call& call, const ops::ElementLoss& loss) {
  const Tensor& input = floating_or_double(call.tensor(1, "self"));
  const Tensor& target = floating_or_double(call.tensor(2, "target"));
  if (input.shape != target.shape || input.type != target.type)
    return unmodelled("input and target of different shapes or types");
  ops::LossResult all =
      ops::element_loss_gradient(loss, floating_or_double(call.tensor(0, "grad_output")), input,
                                 target, reduction_of(call, 3));
  return computed({std::move(all.loss)}, std::move(all.plan));
}

Answer squared(const Call& call, Context& context) {
  return loss(call, context, {.kind = LossKind::squared}, 2);
}
Answer smooth(const Call& call, Context& context) {
  return loss(call, context, {.kind = LossKind::smooth, .width = call.number(3, "beta", 1)}, 2);
}
Answer huber(const Call& call, Context& context) {
  return loss(call, context, {.kind = LossKind::huber, .width = call.number(3, "delta", 1)}, 2);
}
Answer cross_entropy(const Call& call, Context& context) {
  return loss(call, context,
              {.kind = LossKind::cross_entropy, .weight = call.optional_tensor(2, "weight")}, 3);
}
Answer logits(const Call& call, Context& context) {
  return loss(call, context,
              {.kind = LossKind::logits,
               .weight = call.optional_tensor(2, "weight"),
               .positive_weight = call.optional_tensor(3, "pos_weight")},
              4);
}
Answer squared_gradient(const Call& call, Context&) {
  return gradient(call, {.kind = LossKind::squared});
}
Answer smooth_gradient(const Call& call, Context&) {
  return gradient(call, {.kind = LossKind::smooth, .width = call.number(4, "beta")});
}
Answer huber_gradient(const Call& call, Context&) {
  return gradient(call, {.kind = LossKind::huber, .width = call.number(4, "delta")});
}

Answer likelihood(const Call& call, Context&) {
  const Tensor& input = floating_or_double(call.tensor(0, "self"));
  ops::NegativeLogLikelihood all = ops::negative_log_likelihood(
      input, call.tensor(1, "target"), call.optional_tensor(2, "weight"), reduction_of(call, 3),
      call.integer(4, "ignore_index", -100));
  return computed({std::move(all.loss), std::move(all.total_weight)}, std::move(all.plan));
}
Answer likelihood_gradient(const Call& call, Context&) {
  return computed({ops::negative_log_likelihood_gradient(
                      floating_or_double(call.tensor(0, "grad_output")),
                      floating_or_double(call.tensor(1, "self")), call.tensor(2, "target"),
                      call.optional_tensor(3, "weight"), reduction_of(call, 4),
                      call.integer(5, "ignore_index", -100), call.tensor(6, "total_weight"))},
                  "one element a row");
}
Answer likelihood_of_images(const Call& call, Context&) {
  ops::ImageLikelihood all = ops::image_likelihood(
      floating(call.tensor(0, "self")), call.tensor(1, "target"), call.optional_tensor(2, "weight"),
      reduction_of(call, 3), call.integer(4, "ignore_index", -100));
  if (!all.loss) {
    return {.results = {},
            .plan = "atomics add the blocks' sums in no fixed order",
            .status = Status::unordered};
  }
  Answer answer =
      computed({std::move(all.loss), std::move(all.total_weight)}, "a block of 1024 an image");
  // Nothing is written to the sum of the weights.
  if (reduction_of(call, 3) == ops::LossReduction::none) answer.data_from = 1;
  return answer;
}
Answer likelihood_of_images_gradient(const Call& call, Context&) {
  return computed(
      {ops::image_likelihood_gradient(
          floating(call.tensor(0, "grad_output")), floating(call.tensor(1, "self")),
          call.tensor(2, "target"), call.optional_tensor(3, "weight"), reduction_of(call, 4),
          call.integer(5, "ignore_index", -100), call.tensor(6, "total_weight"))},
      "one element a pixel");
}

ops::Margin margin_of(const Call& call, std::size_t first) {
  const double power = call.number(first, "p", 1);
  if (power != 1 && power != 2) throw UnknownArguments{"a power other than 1 and 2"};
  return {.power = static_cast<int>(power),
          .margin = call.number(first + 1, "margin", 1),
          .weight = call.optional_tensor(first + 2, "weight")};
}
Answer margin(const Call& call, Context& context) {
  ops::LossResult all = ops::margin_loss(
      margin_of(call, 2), floating_or_double(call.tensor(0, "self")), call.tensor(1, "target"),
      reduction_of(call, 5), context.machine, context.threads);
  return computed({std::move(all.loss)}, std::move(all.plan));
}
Answer margin_gradient(const Call& call, Context&) {
  return computed({ops::margin_loss_gradient(margin_of(call, 3),
                                             floating_or_double(call.tensor(0, "grad_output")),
                                             floating_or_double(call.tensor(1, "self")),
                                             call.tensor(2, "target"), reduction_of(call, 6))},
                  "a block of 128 a row");
}
Answer multilabel_margin(const Call& call, Context& context) {
  ops::MultilabelMargin all = ops::multilabel_margin_loss(
      floating_or_double(call.tensor(0, "self")), call.tensor(1, "target"), reduction_of(call, 2),
      context.machine, context.threads);
  return computed({std::move(all.loss), std::move(all.is_target)}, std::move(all.plan));
}
Answer multilabel_margin_gradient(const Call& call, Context&) {
  auto result = ops::multilabel_margin_loss_gradient(
      floating_or_double(call.tensor(0, "grad_output")), floating_or_double(call.tensor(1, "self")),
      call.tensor(2, "target"), reduction_of(call, 3));
  if (!result) {
    return {.results = {},
            .plan = "two warps race for the gradient of a row's last class",
            .status = Status::unordered};
  }
  return computed({std::move(result)}, "a block of 128 a row");
}

constexpr std::array loss_handlers = {
    Handler{"aten.binary_cross_entropy", cross_entropy},
    Handler{"aten.binary_cross_entropy_with_logits", logits},
    Handler{"aten.huber_loss", huber},
    Handler{"aten.huber_loss_backward", huber_gradient},
    Handler{"aten.mse_loss", squared},
    Handler{"aten.mse_loss_backward", squared_gradient},
    Handler{"aten.multi_margin_loss", margin},
    Handler{"aten.multi_margin_loss_backward", margin_gradient},
    Handler{"aten.multilabel_margin_loss_backward", multilabel_margin_gradient},
    Handler{"aten.multilabel_margin_loss_forward", multilabel_margin},
    Handler{"aten.nll_loss2d_backward", likelihood_of_images_gradient},
    Handler{"aten.nll_loss2d_forward", likelihood_of_images},
    Handler{"aten.nll_loss_backward", likelihood_gradient},
    Handler{"aten.nll_loss_forward", likelihood},
    Handler{"aten.smooth_l1_loss", smooth},
    Handler{"aten.smooth_l1_loss_backward", smooth_gradient},
};

}  // namespace

std::span<const Handler> loss_calls() { return loss_handlers; }

}  // namespace guardbit::emulator::replay
