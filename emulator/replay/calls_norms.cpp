#include <limits>

#include "emulator/operators/row_norms.hpp"
#include "emulator/replay/handler.hpp"

// Normalisations and their gradients.
namespace guardbit::emulator::replay {
namespace {

namespace ops = operators;

const Tensor& floating(const Tensor& tensor) {
  if (!ops::is_working_type(tensor.type)) throw UnknownArguments{"a type without a model"};
  return tensor;
}

Answer layer_norm(const Call& call, Context& context) {
  ops::RowNormResult all =
      ops::row_norm(ops::RowNorm::layer, floating(call.tensor(0, "input")),
                    call.integers(1, "normalized_shape").size(), call.optional_tensor(2, "weight"),
                    call.optional_tensor(3, "bias"), call.number(4, "eps", 1e-5), context.threads);
  return computed({std::move(all.output), std::move(all.mean), std::move(all.reciprocal)},
                  std::move(all.plan));
}

Answer rms_norm(const Call& call, Context& context) {
  ops::RowNormResult all = ops::row_norm(
      ops::RowNorm::rms, floating(call.tensor(0, "input")),
      call.integers(1, "normalized_shape").size(), call.optional_tensor(2, "weight"), nullptr,
      call.number(3, "eps", std::numeric_limits<float>::epsilon()), context.threads);
  return computed({std::move(all.output), std::move(all.reciprocal)}, std::move(all.plan));
}

/// The gradients that the call's mask asks for, in order.
Answer gradients(const Call& call, std::size_t mask_position,
                 std::vector<std::optional<Tensor>> all, std::string plan) {
  const Value* mask = call.find(mask_position, "output_mask");
  std::vector<std::optional<Tensor>> wanted;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const bool* is_wanted = mask != nullptr && mask->list() != nullptr && i < mask->list()->size()
                                ? std::get_if<bool>(&(*mask->list())[i].content)
                                : nullptr;
    if (is_wanted == nullptr || *is_wanted) wanted.push_back(std::move(all[i]));
  }
  return computed(std::move(wanted), std::move(plan));
}

Answer layer_norm_gradients(const Call& call, Context& context) {
  ops::RowNormGradients all = ops::row_norm_gradients(
      ops::RowNorm::layer, floating(call.tensor(0, "grad_out")), floating(call.tensor(1, "input")),
      call.integers(2, "normalized_shape").size(), &call.tensor(3, "mean"), call.tensor(4, "rstd"),
      call.optional_tensor(5, "weight"), context.machine, context.threads);
  return gradients(call, 7, {std::move(all.input), std::move(all.weight), std::move(all.bias)},
                   std::move(all.plan));
}

Answer rms_norm_gradients(const Call& call, Context& context) {
  ops::RowNormGradients all = ops::row_norm_gradients(
      ops::RowNorm::rms, floating(call.tensor(0, "grad_out")), floating(call.tensor(1, "input")),
      call.integers(2, "normalized_shape").size(), nullptr, call.tensor(3, "rstd"),
      call.optional_tensor(4, "weight"), context.machine, context.threads);
  return gradients(call, 5, {std::move(all.input), std::move(all.weight)}, std::move(all.plan));
}

constexpr std::array handlers = {
    Handler{"aten._fused_rms_norm", rms_norm},
    Handler{"aten._fused_rms_norm_backward", rms_norm_gradients},
    Handler{"aten.native_layer_norm", layer_norm},
    Handler{"aten.native_layer_norm_backward", layer_norm_gradients},
};

}  // namespace

std::span<const Handler> norm_calls() { return handlers; }

}  // namespace guardbit::emulator::replay
