#include "emulator/replay/usual_convolutions.hpp"

#include <algorithm>
#include <string>

#include "emulator/gemm/atlas/atlas.hpp"
#include "emulator/operators/memory_order.hpp"
#include "formats/support/whole_division.hpp"

namespace guardbit::emulator::replay {
namespace {

using atlas::ConvolutionForm;
using atlas::ConvolutionLeaf;
using atlas::ConvolutionPass;
using atlas::Numbers;

/// Of 1000 calls like a guessed one so many agree.
constexpr int unsure = 900;

bool takes_tf32(const Context& context) { return context.flag("cudnn_allow_tf32", true); }

Numbers numbers_of(const Tensor& tensor, const Context& context) {
  if (tensor.type == formats::fp16) return Numbers::f16;
  if (tensor.type == formats::bf16) return Numbers::bf16;
  return takes_tf32(context) ? Numbers::tf32 : Numbers::f32;
}

constexpr const char* tf32_core = "sm_90/wgmma.mma_async.sync.aligned.m64nNk8.f32.tf32.tf32";

std::string tensor_core(const Tensor& result) {
  const std::string before = "sm_90/wgmma.mma_async.sync.aligned.m64nNk";
  if (result.type == formats::fp16) return before + "16.f32.f16.f16";
  if (result.type == formats::bf16) return before + "16.f32.bf16.bf16";
  return tf32_core;
}

std::string stored_in(const Tensor& result) { return " d=" + formats::name_of(result.type); }

/// Bias in 16 bits is added by a kernel of its own.
std::string ending_of(const ConvolutionCall& x, const Tensor& output) {
  return (x.bias && output.type != formats::fp32 ? " add=rounded" : "") + stored_in(output);
}

/// An order's name; with tensor cores and FP32 it says that it is in TF32.
std::string named(const std::string& order, const Tensor& result, bool fma) {
  if (fma || result.type != formats::fp32) return order;
  return order.empty() ? "in tf32" : order + " in tf32";
}

/// The name of channels in blocks, filled up with zeros; where one block has them all, of channels
/// innermost, for which `plain` stands. Where K is cut all blocks are of one length.
std::string blocks_of(const ConvolutionLeaf& leaf, std::int64_t channels,
                      const std::string& plain) {
  const bool is_cut = leaf.parts > 1 && channels % std::max(1, leaf.tile) != 0;
  if (leaf.tile < channels)
    return (is_cut ? "channels in whole blocks of " : "channels in blocks of ") +
           std::to_string(leaf.tile);
  return channels % padded_channels == 0 ? plain : "channels innermost, padded to 16";
}

/// The instruction, and how it takes its operands.
std::string unit_of(const ConvolutionLeaf& leaf, const Tensor& result) {
  using atlas::TensorCoreInput;
  if (leaf.fma) return "simt/fma.fp32";
  if (leaf.eights)
    return result.type == formats::fp16
               ? "sm_90/mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32"
               : "sm_90/mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32";
  if (leaf.input == TensorCoreInput::widened) return tf32_core;
  std::string unit = tensor_core(result);
  if (leaf.input == TensorCoreInput::to_nearest) unit += " input=rna";
  if (leaf.input == TensorCoreInput::truncated) unit += " input=rz";
  return unit;
}

std::string split_text(std::int64_t parts, std::int64_t tile, std::string_view how) {
  if (parts <= 1) return "";
  return " split=" + std::to_string(parts) + "x" + std::to_string(tile) + ":" + std::string(how);
}

/// Of tiles of K an incomplete one comes first.
std::string residue_text(const ConvolutionLeaf& leaf, std::int64_t depth) {
  if (leaf.tile == 0 || depth % leaf.tile == 0) return "";
  return " residue_first=" + std::to_string(leaf.tile);
}

/// K in runs, whose sums are added.
std::string runs_text(const ConvolutionLeaf& leaf, std::int64_t depth, bool contiguous,
                      const Tensor& result) {
  using namespace formats;
  const std::int64_t tile = leaf.form == ConvolutionForm::reduced_by_64
                                ? 64
                                : atlas::tile_of_parts(result.type == fp32, depth, contiguous);
  const std::int64_t each = rounded_up(divided_up(depth, leaf.parts), tile);
  std::string how = "ceil";
  if (leaf.form == ConvolutionForm::reduced_in_16_bits) how += ":" + name_of(result.type);
  if (leaf.form == ConvolutionForm::reduced_in_place) how += ":in_place";
  // A part whose tiles are not all whole begins with the incomplete one, too.
  const bool is_whole = each % std::max(1, leaf.tile) == 0;
  return split_text(divided_up(depth, each), each, how) +
         residue_text(leaf, is_whole ? depth : each);
}

bool is_reduced(const ConvolutionLeaf& leaf) {
  return leaf.form == ConvolutionForm::reduced ||
         leaf.form == ConvolutionForm::reduced_in_16_bits ||
         leaf.form == ConvolutionForm::reduced_by_64 ||
         leaf.form == ConvolutionForm::reduced_in_place;
}

/// Lanes that share so many elements of K.
std::string lanes_text(const ConvolutionLeaf& leaf, std::int64_t depth) {
  using Form = ConvolutionForm;
  const bool halves = leaf.form == Form::shared_halves || leaf.form == Form::images_shared_halves;
  const std::int64_t run = leaf.tile == 0 ? formats::divided_up(depth, leaf.parts) : leaf.tile;
  const char* const how = !halves                                ? ""
                          : (leaf.parts & (leaf.parts - 1)) == 0 ? ":halves"
                                                                 : ":shuffles";
  std::string text =
      " lanes=" + std::to_string(leaf.parts) + "x" + std::to_string(run) + ":round_robin" + how;
  if (leaf.restart != 0) text += " promote=" + std::to_string(leaf.restart);
  return text;
}

/// Parts of K where it walks blocks of channels: they take whole blocks in turn, or consecutive
/// segments of the blocks' tiles, one of each place of the filter.
std::string parts_text(const ConvolutionLeaf& leaf, std::int64_t channels, std::int64_t places) {
  using formats::divided_up;
  const std::int64_t block = std::min<std::int64_t>(
      std::max(1, leaf.tile),
      places > 1 ? formats::rounded_up(channels, padded_channels) : channels);
  const std::int64_t blocks = divided_up(channels, block);
  switch (leaf.form) {
    case ConvolutionForm::segments:
      return split_text(std::min(leaf.parts, blocks * places), block,
                        "balanced_last:adjacent_last");
    case ConvolutionForm::segments_descending:
      return split_text(std::min(leaf.parts, blocks * places), block, "balanced_last:descending");
    case ConvolutionForm::split:
      return split_text(std::min(leaf.parts, blocks), block * places, "round_robin");
    case ConvolutionForm::split_last_first:
      // Where the last part has no block the others are added in ascending order.
      return split_text(std::min(leaf.parts, blocks), block * places,
                        leaf.parts > blocks ? "round_robin" : "round_robin:last_first");
    default: return "";
  }
}

bool is_in_blocks(const ConvolutionLeaf& leaf) {
  using Form = ConvolutionForm;
  return leaf.form == Form::blocks || leaf.form == Form::blocks_descending ||
         leaf.form == Form::segments || leaf.form == Form::segments_descending ||
         leaf.form == Form::last_segments || leaf.form == Form::split ||
         leaf.form == Form::split_last_first;
}

UsualPlan forward_of(const ConvolutionLeaf& leaf, const ConvolutionCall& x, const Tensor& output) {
  UsualPlan result{"", unit_of(leaf, output), leaf.agree};
  const std::int64_t channels = x.weight.shape[1];
  const std::int64_t places = x.weight.shape[2] * x.weight.shape[3];
  if (leaf.form == ConvolutionForm::innermost) result.plan += residue_text(leaf, channels);
  if (is_reduced(leaf)) result.plan += runs_text(leaf, channels, true, output);
  if (is_shared(leaf.form)) result.plan += lanes_text(leaf, channels);
  if (leaf.form == ConvolutionForm::outermost) result.plan += " conv=crs";
  if (leaf.form == ConvolutionForm::loads)
    result.plan += output.type == formats::fp32 ? " loads=4x4:2" : " loads=4x8:4";
  if (is_in_blocks(leaf) && places > 1) result.order = blocks_of(leaf, channels, "");
  result.plan += parts_text(leaf, channels, places);
  result.order = named(result.order, output, leaf.fma);
  result.plan += ending_of(x, output);
  return result;
}

UsualPlan data_of(const ConvolutionLeaf& leaf, const ConvolutionCall& x, const Tensor& maps,
                  const Tensor& data) {
  const std::string plain = "channels innermost";
  const std::int64_t places = x.weight.shape[2] * x.weight.shape[3], channels = maps.shape[1];
  UsualPlan result{plain, unit_of(leaf, data), leaf.agree};
  if (leaf.form == ConvolutionForm::innermost) result.plan += residue_text(leaf, channels);
  if (is_reduced(leaf)) {
    const bool is_one_image = data.shape[0] == 1 && !operators::says_channels_last(x.input);
    result.plan += runs_text(leaf, channels, !is_one_image, data);
  }
  if (is_shared(leaf.form)) result.plan += lanes_text(leaf, channels);
  if (leaf.form == ConvolutionForm::outermost) result.order = "channels outermost";
  if (leaf.form == ConvolutionForm::per_place) result.plan += split_text(places, channels, "ceil");
  const bool descends = leaf.form == ConvolutionForm::blocks_descending ||
                        leaf.form == ConvolutionForm::segments ||
                        leaf.form == ConvolutionForm::segments_descending ||
                        leaf.form == ConvolutionForm::last_segments;
  if (is_in_blocks(leaf) && places > 1)
    result.order = blocks_of(leaf, channels, plain) + (descends ? ", descending" : "");
  result.plan += parts_text(leaf, channels, places);
  result.order = named(result.order, data, leaf.fma);
  result.plan += ending_of(x, data);
  return result;
}

/// Nothing of tilings and transforms, which are no plans.
std::optional<UsualPlan> weights_of(const ConvolutionLeaf& leaf, const Tensor& maps,
                                    const Tensor& gradient) {
  const std::int64_t images = maps.shape[0], pixels = maps.shape[2] * maps.shape[3];
  const auto tiles_cut = [&](const char* how) {
    const std::int64_t tile = std::max(1, leaf.tile);
    return split_text(std::min(leaf.parts, formats::divided_up(images * pixels, tile)), tile, how);
  };
  const bool is_together = operators::says_channels_last(maps);
  // Parts are stored in the result's numbers.
  const bool is_in_place = gradient.type != formats::fp32;
  UsualPlan result{named("", gradient, leaf.fma), unit_of(leaf, gradient), leaf.agree};
  if (leaf.input == atlas::TensorCoreInput::widened) result.order = widened_order;
  using Form = ConvolutionForm;
  switch (leaf.form) {
    case Form::chain: result.plan += residue_text(leaf, images * pixels); break;
    case Form::lanes: result.plan += " split=32x1:round_robin:halves"; break;
    case Form::images:
      result.plan += split_text(images, pixels, "ceil") + residue_text(leaf, pixels);
      break;
    case Form::images_shared_halves:
    case Form::images_shared_ascending:
      result.plan += lanes_text(leaf, pixels) + split_text(images, pixels, "ceil");
      break;
    case Form::shared_halves:
    case Form::shared_ascending: result.plan += lanes_text(leaf, images * pixels); break;
    case Form::reduced:
    case Form::reduced_in_16_bits:
    case Form::reduced_by_64:
    case Form::reduced_in_place:
      result.plan += runs_text(leaf, images * pixels, images == 1 && !is_together, gradient);
      break;
    case Form::segments: result.plan += tiles_cut("balanced_last:adjacent_last"); break;
    case Form::segments_descending: result.plan += tiles_cut("balanced_last:descending"); break;
    case Form::split: result.plan += tiles_cut("round_robin"); break;
    case Form::split_in_place:
      result.plan += tiles_cut(is_in_place ? "round_robin:in_place" : "round_robin");
      break;
    case Form::split_last_first: result.plan += tiles_cut("round_robin:last_first"); break;
    default: return std::nullopt;
  }
  result.plan += stored_in(gradient);
  return result;
}

bool is_pointwise(const ConvolutionCall& x) {
  return x.weight.shape[2] == 1 && x.weight.shape[3] == 1;
}

// Of calls that the atlas does not hold: what cuDNN took for small networks, as the names of its
// kernels and recorded results told.

/// One chain of FMAs over the filter, whatever kernel is taken: 785 of 785 results of undilated
/// ones. PyTorch's own kernel, for images channel by channel, begins it with the bias; cuDNN's adds
/// it afterwards. Of FP16 images channel by channel either is taken.
std::optional<UsualPlan> depthwise_forward(const ConvolutionCall& x, const Tensor& output) {
  const bool is_native = !operators::says_channels_last(x.input);
  const bool is_plain = x.dilation[0] == 1 && x.dilation[1] == 1;
  const bool is_either = x.bias && is_native && output.type == formats::fp16;
  UsualPlan result{"", "simt/fma.fp32", is_plain && !is_either ? atlas::rule_agrees : unsure};
  result.plan += x.bias && is_native ? " add=initial" + stored_in(output) : ending_of(x, output);
  return result;
}

/// FMAs over channels, then the filter, for FP32 and few channels that do not lie together; else
/// one chain over the filter, channels innermost.
std::optional<UsualPlan> other_forward(const ConvolutionCall& x, const Tensor& output,
                                       const Context& context) {
  constexpr std::int64_t least = 16, vector = 8;
  const bool is_together = operators::says_channels_last(x.input);
  const bool is_strided = x.stride[0] != 1 || x.stride[1] != 1;
  const std::string ending = ending_of(x, output);
  if (!x.is_transposed && x.groups > 1 && x.groups == x.input.shape[1])
    return depthwise_forward(x, output);
  if (x.is_transposed || x.groups != 1 || (is_pointwise(x) && is_strided)) return {};
  if (output.type == formats::fp32) {
    if (is_together) return {};
    if (!is_pointwise(x)) return UsualPlan{"", "simt/fma.fp32 conv=crs" + ending};
    if (!takes_tf32(context)) return {};
    return UsualPlan{"in tf32", tensor_core(output) + ending};
  }
  if (!is_together && (x.input.shape[1] < least || x.input.shape[1] % vector != 0))
    return UsualPlan{"", "simt/fma.fp32 conv=crs" + ending};
  return UsualPlan{"", tensor_core(output) + ending};
}

/// Of few output channels; with more cuDNN walks them in blocks of several kinds.
std::optional<UsualPlan> other_data(const ConvolutionCall& x, const Tensor& maps,
                                    const Tensor& data) {
  constexpr std::int64_t most = 32;
  if (x.is_transposed || x.groups != 1 || data.type == formats::fp32) return {};
  if (maps.shape[1] > most && !is_pointwise(x)) return {};
  return UsualPlan{"channels innermost", tensor_core(data) + stored_in(data)};
}

/// Of images of few channels; of those whose channels lie together one chain. For others cuDNN
/// transforms the input or splits K in ways that no rule is known for.
std::optional<UsualPlan> other_weights(const ConvolutionCall& x, const Tensor& gradient) {
  constexpr std::int64_t few = 4;
  const bool is_apart = x.stride[0] == x.weight.shape[2] && x.stride[1] == x.weight.shape[3] &&
                        x.padding[0] == 0 && x.padding[1] == 0;
  if (x.is_transposed || x.groups != 1) return {};
  if (operators::says_channels_last(x.input) || (is_pointwise(x) && !is_apart))
    return gradient.type == formats::fp32
               ? std::nullopt
               : std::optional(UsualPlan{"", tensor_core(gradient) + stored_in(gradient)});
  if (x.input.shape[1] > few) return {};
  if (is_apart)
    return UsualPlan{"", "simt/fma.fp32 split=32x1:round_robin:halves" + stored_in(gradient)};
  if (gradient.type == formats::fp32) return {};
  return UsualPlan{"", "simt/fma.fp32" + stored_in(gradient)};
}

/// cuDNN is told at what multiple of bytes a tensor begins; those that were recorded begin at one
/// of 512, of which kernels read 16 at once. PyTorch gives it a copy, which begins so, of a tensor
/// that is not contiguous in the layout of the call.
bool begins_at_a_vector(const Tensor& tensor, bool channels_last) {
  const bool is_copied = channels_last ? !operators::is_contiguous_channels_last(tensor)
                                       : !operators::is_contiguous(tensor);
  constexpr std::int64_t at_once = 16;
  return is_copied || tensor.offset * tensor.element_bytes() % at_once == 0;
}

}  // namespace

std::optional<ConvolutionLeaf> leaf_of(const ConvolutionCall& x, ConvolutionPass pass,
                                       const Context& context) {
  const auto same = [](const std::array<std::int64_t, 2>& pair) { return pair[0] == pair[1]; };
  if (x.groups != 1 || x.dilation[0] != 1 || x.dilation[1] != 1 || !same(x.stride) ||
      !same(x.padding) || x.weight.shape[2] != x.weight.shape[3] || x.input.count() == 0 ||
      x.weight.count() == 0 || context.flag("cudnn_benchmark", false))
    return std::nullopt;
  atlas::ConvolutionShape shape;
  shape.images = x.input.shape[0];
  shape.channels = x.input.shape[1];
  shape.rows = x.input.shape[2];
  shape.columns = x.input.shape[3];
  shape.outputs = x.weight.shape[0];
  shape.filter = x.weight.shape[2];
  shape.stride = x.stride[0];
  shape.padding = x.padding[0];
  shape.channels_last =
      operators::says_channels_last(x.input) || operators::says_channels_last(x.weight);
  shape.numbers = numbers_of(x.input, context);
  shape.deterministic =
      context.flag("cudnn_deterministic", false) || context.flag("deterministic", false);
  ConvolutionLeaf leaf = atlas::leaf_of(shape, pass);
  if (!begins_at_a_vector(x.input, shape.channels_last) ||
      !begins_at_a_vector(x.weight, shape.channels_last))
    leaf.agree = std::min(leaf.agree, unsure);
  return leaf;
}

std::optional<UsualPlan> usual_forward(const ConvolutionCall& x, const Tensor& output,
                                       const Context& context) {
  const auto leaf = leaf_of(x, ConvolutionPass::forward, context);
  if (!leaf) return other_forward(x, output, context);
  if (leaf->form == ConvolutionForm::unknown) return std::nullopt;
  return forward_of(*leaf, x, output);
}

std::optional<UsualPlan> usual_data(const ConvolutionCall& x, const Tensor& maps,
                                    const Tensor& data, const Context& context) {
  const auto leaf = leaf_of(x, ConvolutionPass::data, context);
  if (!leaf) return other_data(x, maps, data);
  // Several chunks' sums are no plan.
  if (leaf->form == ConvolutionForm::per_place && leaf->tile != 0 &&
      maps.shape[2] * maps.shape[3] > leaf->tile)
    return std::nullopt;
  if (leaf->form == ConvolutionForm::unknown) return std::nullopt;
  return data_of(*leaf, x, maps, data);
}

std::optional<LastWave> last_wave_of_forward(const ConvolutionCall& x, const Tensor& output,
                                             const Context& context) {
  auto leaf = leaf_of(x, ConvolutionPass::forward, context);
  if (!leaf || leaf->form != ConvolutionForm::last_segments) return std::nullopt;
  leaf->form = ConvolutionForm::segments;
  return LastWave{forward_of(*leaf, x, output), leaf->wave};
}

std::optional<LastWave> last_wave_of_data(const ConvolutionCall& x, const Tensor& maps,
                                          const Tensor& data, const Context& context) {
  auto leaf = leaf_of(x, ConvolutionPass::data, context);
  if (!leaf || leaf->form != ConvolutionForm::last_segments) return std::nullopt;
  leaf->form = ConvolutionForm::segments;
  return LastWave{data_of(*leaf, x, maps, data), leaf->wave};
}

std::optional<UsualPlan> usual_weights(const ConvolutionCall& x, const Tensor& maps,
                                       const Tensor& gradient, const Context& context) {
  const auto leaf = leaf_of(x, ConvolutionPass::weight, context);
  if (!leaf) return other_weights(x, gradient);
  return weights_of(*leaf, maps, gradient);
}

}  // namespace guardbit::emulator::replay
