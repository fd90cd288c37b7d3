#include <algorithm>
#include <limits>
#include <string_view>

#include "emulator/operators/channel_norms.hpp"
#include "emulator/operators/layers/weight_norm.hpp"
#include "emulator/operators/row_norms.hpp"
#include "emulator/replay/calls.hpp"

// Normalisations and their gradients.
namespace guardbit::emulator::replay {
namespace {

namespace ops = operators;

/// How many of the last dimensions of an argument are normalized, whose sizes stand after it.
std::size_t normalized_dimensions(const Call& call, std::size_t position, std::string_view name) {
  const Dimensions sizes = call.integers(position + 1, "normalized_shape");
  const Dimensions& shape = call.tensor(position, name).shape;
  if (sizes.size() > shape.size() || !std::equal(sizes.rbegin(), sizes.rend(), shape.rbegin()))
    throw UnknownArguments{"sizes that are not the last ones of the tensor"};
  return sizes.size();
}

Answer layer_norm(const Call& call, Context& context) {
  ops::RowNormResult all =
      ops::row_norm(ops::RowNorm::layer, floating_or_double(call.tensor(0, "input")),
                    normalized_dimensions(call, 0, "input"), call.optional_tensor(2, "weight"),
                    call.optional_tensor(3, "bias"), call.number(4, "eps", 1e-5), context.threads);
  return computed({std::move(all.output), std::move(all.mean), std::move(all.reciprocal)},
                  std::move(all.plan));
}

Answer rms_norm(const Call& call, Context& context) {
  const double least = call.tensor(0, "input").type == formats::fp64
                           ? std::numeric_limits<double>::epsilon()
                           : double{std::numeric_limits<float>::epsilon()};
  ops::RowNormResult all =
      ops::row_norm(ops::RowNorm::rms, floating_or_double(call.tensor(0, "input")),
                    normalized_dimensions(call, 0, "input"), call.optional_tensor(2, "weight"),
                    nullptr, call.number(3, "eps", least), context.threads);
  return computed({std::move(all.output), std::move(all.reciprocal)}, std::move(all.plan));
}

/// Does the call's mask ask for that gradient?
bool wants(const Call& call, std::size_t mask_position, std::size_t gradient) {
  const Value* mask = call.find(mask_position, "output_mask");
  if (mask == nullptr || mask->list() == nullptr || gradient >= mask->list()->size()) return true;
  const bool* is_wanted = std::get_if<bool>(&(*mask->list())[gradient].content);
  return is_wanted == nullptr || *is_wanted;
}

/// The gradients that the call's mask asks for, in order.
Answer gradients(const Call& call, std::size_t mask_position,
                 std::vector<std::optional<Tensor>> all, std::string plan) {
  std::vector<std::optional<Tensor>> wanted;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (wants(call, mask_position, i)) wanted.push_back(std::move(all[i]));
  }
  return computed(std::move(wanted), std::move(plan));
}

bool has_blocks_of_rows(const Tensor& input, std::size_t normalised) {
  std::size_t rows = 1, columns = 1;
  for (std::size_t d = 0; d < input.shape.size(); ++d)
    (d + normalised < input.shape.size() ? rows : columns) *=
        static_cast<std::size_t>(input.shape[d]);
  return ops::column_shape(rows, columns).blocks > 1;
}

constexpr std::string_view mixed_types = "a gradient of another type than the input's";
bool has_mixed_types(const Call& call) {
  return call.tensor(0, "grad_out").type != call.tensor(1, "input").type;
}

Answer layer_norm_gradients(const Call& call, Context& context) {
  if (has_mixed_types(call)) return unmodelled(std::string(mixed_types));
  const std::size_t count = normalized_dimensions(call, 1, "input");
  // Blocks of many rows store into a weight's gradient that is not there.
  if (wants(call, 7, 2) && !wants(call, 7, 1) && has_blocks_of_rows(call.tensor(1, "input"), count))
    return unmodelled("layer_norm's gradient of the bias alone, of more than 65,536 rows");
  ops::RowNormGradients all = ops::row_norm_gradients(
      ops::RowNorm::layer, floating_or_double(call.tensor(0, "grad_out")),
      floating_or_double(call.tensor(1, "input")), normalized_dimensions(call, 1, "input"),
      &call.tensor(3, "mean"), call.tensor(4, "rstd"), call.optional_tensor(5, "weight"),
      wants(call, 7, 1) || wants(call, 7, 2), context.threads);
  return gradients(call, 7, {std::move(all.input), std::move(all.weight), std::move(all.bias)},
                   std::move(all.plan));
}

Answer rms_norm_gradients(const Call& call, Context& context) {
  if (has_mixed_types(call)) return unmodelled(std::string(mixed_types));
  ops::RowNormGradients all = ops::row_norm_gradients(
      ops::RowNorm::rms, floating_or_double(call.tensor(0, "grad_out")),
      floating_or_double(call.tensor(1, "input")), normalized_dimensions(call, 1, "input"), nullptr,
      call.tensor(3, "rstd"), call.optional_tensor(4, "weight"), wants(call, 5, 1),
      context.threads);
  return gradients(call, 5, {std::move(all.input), std::move(all.weight)}, std::move(all.plan));
}

Answer group_norm(const Call& call, Context&) {
  const Tensor& input = floating_or_double(call.tensor(0, "input"));
  ops::ChannelNormResult all =
      ops::group_norm(input, call.optional_tensor(1, "weight"), call.optional_tensor(2, "bias"),
                      call.integer(6, "group"), call.number(7, "eps"));
  return computed({std::move(all.output), std::move(all.mean), std::move(all.reciprocal)},
                  std::move(all.plan));
}
Answer group_norm_gradients(const Call& call, Context&) {
  const Tensor& gradient = floating_or_double(call.tensor(0, "grad_out"));
  const Tensor& input = floating_or_double(call.tensor(1, "input"));
  if (gradient.type != input.type) return unmodelled("gradient and input of different types");
  ops::ChannelNormGradients all =
      ops::group_norm_gradients(gradient, input, call.tensor(2, "mean"), call.tensor(3, "rstd"),
                                call.optional_tensor(4, "weight"), call.integer(8, "group"));
  return gradients(call, 9, {std::move(all.input), std::move(all.weight), std::move(all.bias)},
                   std::move(all.plan));
}

ops::BatchNormArguments batch_norm_arguments(const Call& call) {
  return {.weight = call.optional_tensor(1, "weight"),
          .bias = call.optional_tensor(2, "bias"),
          .running_mean = call.optional_tensor(3, "running_mean"),
          .running_variance = call.optional_tensor(4, "running_var"),
          .is_training = call.boolean(5, "training", false),
          .epsilon = call.number(7, "eps"),
          .momentum = call.number(6, "momentum", 0)};
}

/// With the running statistics, which the call changes without saying so.
Answer normalised(ops::ChannelNormResult all, std::vector<std::optional<Tensor>> results) {
  Answer answer = computed(std::move(results), std::move(all.plan));
  if (all.running_mean)
    answer.also_changed.emplace_back("running_mean", std::move(*all.running_mean));
  if (all.running_variance)
    answer.also_changed.emplace_back("running_var", std::move(*all.running_variance));
  return answer;
}
Answer batch_norm(const Call& call, Context&) {
  ops::ChannelNormResult all =
      ops::batch_norm(floating(call.tensor(0, "input")), batch_norm_arguments(call));
  std::vector<std::optional<Tensor>> results = {all.output, all.mean, all.reciprocal};
  return normalised(std::move(all), std::move(results));
}
/// In inference, where the moments are not given back.
Answer batch_norm_inference(const Call& call, Context&) {
  const Tensor& input = floating(call.tensor(0, "input"));
  ops::ChannelNormResult all =
      ops::batch_norm(input, {.weight = call.optional_tensor(1, "weight"),
                              .bias = call.optional_tensor(2, "bias"),
                              .running_mean = call.optional_tensor(3, "running_mean"),
                              .running_variance = call.optional_tensor(4, "running_var"),
                              .is_training = false,
                              .epsilon = call.number(6, "eps")});
  return computed({std::move(all.output), std::move(all.mean), std::move(all.reciprocal)},
                  std::move(all.plan));
}
Answer batch_norm_gradients(const Call& call, Context&) {
  if (!call.boolean(7, "train", true)) {
    ops::ChannelNormGradients all = ops::batch_norm_gradients_in_inference(
        floating(call.tensor(0, "grad_out")), floating(call.tensor(1, "input")),
        call.optional_tensor(5, "save_mean"), call.optional_tensor(6, "save_invstd"),
        {.weight = call.optional_tensor(2, "weight"),
         .running_mean = call.optional_tensor(3, "running_mean"),
         .running_variance = call.optional_tensor(4, "running_var"),
         .is_training = false,
         .epsilon = call.number(8, "eps")},
        wants(call, 9, 1) || wants(call, 9, 2));
    if (!wants(call, 9, 0)) return unmodelled("the gradient without the input's, in inference");
    return gradients(call, 9, {std::move(all.input), std::move(all.weight), std::move(all.bias)},
                     std::move(all.plan));
  }
  const Dimensions& shape = call.tensor(1, "input").shape;
  if (wants(call, 9, 2) && !wants(call, 9, 1) && shape.size() > 1 && shape[1] == 1)
    return unmodelled(
        "of one channel the gradient of a bias beside no weight, which an H200 left at 0");
  ops::ChannelNormGradients all = ops::batch_norm_gradients(
      floating(call.tensor(0, "grad_out")), floating(call.tensor(1, "input")),
      call.tensor(5, "save_mean"), call.tensor(6, "save_invstd"), call.optional_tensor(2, "weight"),
      wants(call, 9, 0));
  return gradients(call, 9, {std::move(all.input), std::move(all.weight), std::move(all.bias)},
                   std::move(all.plan));
}

Answer cudnn_batch_norm(const Call& call, Context&) {
  const Tensor& input = floating(call.tensor(0, "input"));
  const ops::BatchNormArguments arguments = batch_norm_arguments(call);
  if (arguments.weight == nullptr || arguments.bias == nullptr)
    return unmodelled("cuDNN's batch_norm without a weight or bias");
  ops::ChannelNormResult all = ops::cudnn_batch_norm(input, arguments);
  Tensor reserve = ops::tensor_of_bytes(formats::uint8, {0}, {1}, {});
  std::vector<std::optional<Tensor>> results = {all.output, all.mean, all.reciprocal,
                                                std::move(reserve)};
  return normalised(std::move(all), std::move(results));
}
Answer cudnn_batch_norm_gradients(const Call& call, Context&) {
  const Tensor& input = floating(call.tensor(0, "input"));
  ops::ChannelNormGradients all = ops::cudnn_batch_norm_gradients(
      floating(call.tensor(1, "grad_output")), input, call.tensor(5, "save_mean"),
      call.tensor(6, "save_var"), call.tensor(2, "weight"));
  return computed({std::move(all.input), std::move(all.weight), std::move(all.bias)},
                  std::move(all.plan));
}

Answer weight_norm(const Call& call, Context&) {
  ops::WeightNorm all = ops::weight_norm(floating(call.tensor(0, "v")),
                                         floating(call.tensor(1, "g")), call.integer(2, "dim", 0));
  return computed({std::move(all.weight), std::move(all.norms)}, "a block a slice, halves");
}
Answer weight_norm_gradients(const Call& call, Context&) {
  ops::WeightNormGradients all = ops::weight_norm_gradients(
      floating(call.tensor(0, "grad_w")), floating(call.tensor(1, "saved_v")),
      floating(call.tensor(2, "saved_g")), floating(call.tensor(3, "saved_norms")),
      call.integer(4, "dim"));
  return computed({std::move(all.v), std::move(all.g)}, "a block a slice, halves");
}

constexpr std::array norm_handlers = {
    Handler{"aten._weight_norm_interface", weight_norm},
    Handler{"aten._weight_norm_interface_backward", weight_norm_gradients},
    Handler{"aten._fused_rms_norm", rms_norm},
    Handler{"aten._fused_rms_norm_backward", rms_norm_gradients},
    Handler{"aten._native_batch_norm_legit_no_training", batch_norm_inference},
    Handler{"aten.cudnn_batch_norm", cudnn_batch_norm},
    Handler{"aten.cudnn_batch_norm_backward", cudnn_batch_norm_gradients},
    Handler{"aten.native_batch_norm", batch_norm},
    Handler{"aten.native_batch_norm_backward", batch_norm_gradients},
    Handler{"aten.native_group_norm", group_norm},
    Handler{"aten.native_group_norm_backward", group_norm_gradients},
    Handler{"aten.native_layer_norm", layer_norm},
    Handler{"aten.native_layer_norm_backward", layer_norm_gradients},
};

}  // namespace

std::span<const Handler> norm_calls() { return norm_handlers; }

}  // namespace guardbit::emulator::replay
