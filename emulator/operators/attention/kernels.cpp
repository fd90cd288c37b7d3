#include "emulator/operators/attention/kernels.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "formats/support/whole_division.hpp"

namespace guardbit::emulator::attention {
namespace {

/// FlashAttention pads heads to these widths.
int flash_width(std::int64_t width) {
  for (const int padded : {32, 64, 96, 128, 192}) {
    if (width <= padded) return padded;
  }
  return 256;
}

/// cuDNN's heads in memory of a multiprocessor, as its sums of dO * O show.
int cudnn_width(std::int64_t width) {
  for (const int padded : {32, 64, 128}) {
    if (width <= padded) return padded;
  }
  return 256;
}

/// The kernel that splits keys: its tiles, whether it splits or not.
int flash_split_tile(std::int64_t width) { return width <= 64 ? 256 : width <= 128 ? 128 : 64; }

/// As many splits as fill the multiprocessors nearly as well as the best number does: PyTorch
/// counts two thread blocks on each.
int flash_splits(const Problem& x, const operators::Machine& machine) {
  if (x.dropout.probability > 0) return 1;
  const std::int64_t tiles = formats::divided_up(x.keys, flash_split_tile(x.width));
  const std::int64_t blocks = x.batch * x.heads * formats::divided_up(x.queries, 64);
  const std::int64_t places = 2 * std::int64_t{machine.multiprocessors};
  if (static_cast<float>(blocks) >= 0.8F * static_cast<float>(places)) return 1;
  const auto most = std::min({std::int64_t{128}, places, tiles});
  const auto differs = [&](std::int64_t n) {
    return n == 1 || formats::divided_up(tiles, n) != formats::divided_up(tiles, n - 1);
  };
  const auto efficiency = [&](std::int64_t n) {
    if (!differs(n)) return 0.0F;
    const float waves = static_cast<float>(blocks * n) / static_cast<float>(places);
    return waves / std::ceil(waves);
  };
  float best = 0;
  for (std::int64_t n = 1; n <= most; ++n) best = std::max(best, efficiency(n));
  for (std::int64_t n = 1; n <= most; ++n) {
    if (differs(n) && efficiency(n) >= 0.85F * best) return static_cast<int>(n);
  }
  return 1;
}

std::string counted(std::int64_t count, std::string_view what) {
  return std::to_string(count) + " " + std::string(what) + (count == 1 ? "" : "s");
}

std::string tiles_in_words(int queries, int keys) {
  return "tiles of " + std::to_string(queries) + " queries x " + std::to_string(keys) + " keys";
}

}  // namespace

ForwardKernel flash_forward(const Problem& x, const operators::Machine& machine) {
  const int width = flash_width(x.width);
  const bool drops = x.dropout.probability > 0;
  ForwardKernel kernel{.form = {.name = "FlashAttention 2",
                                .keys_descend = true,
                                .scores = Scores::after_maximum,
                                .row_sum = RowSum::running,
                                .log_sum = LogSum::fused_scale,
                                .pairs_apart = true,
                                .dropout = DropoutOrder::flash},
                       .splits = flash_splits(x, machine)};
  if (kernel.splits > 1) {
    kernel.form.query_tile = 64;
    kernel.form.key_tile = flash_split_tile(x.width);
    return kernel;
  }
  kernel.form.query_tile = width == 256 || (width == 192 && drops) ? 64 : 128;
  kernel.form.key_tile = width <= 32             ? 128
                         : width == 64           ? (drops ? 64 : 128)
                         : width == 128 && drops ? 32
                                                 : 64;
  return kernel;
}

BackwardKernel flash_backward(const Problem& x, const operators::Machine& machine,
                              bool is_deterministic) {
  const int width = flash_width(x.width);
  BackwardKernel kernel{.form = {.name = "FlashAttention 2",
                                 .query_tile = width <= 64 ? 128 : 64,
                                 .key_tile = width <= 128 ? 128 : 64,
                                 .probability = Probability::two_products,
                                 .delta = {.threads = width % 64 == 0 ? 8 : 4},
                                 .queries_descend = true,
                                 .query_gradient = QueryGradient::added,
                                 .dropout = DropoutOrder::flash}};
  if (is_deterministic) {
    kernel.form.query_sums = static_cast<int>(
        formats::divided_up(machine.multiprocessors, std::max<std::int64_t>(1, x.batch * x.heads)));
  }
  return kernel;
}

ForwardKernel efficient_forward(const Problem& x) {
  const std::int64_t width = std::max(x.width, x.value_width);
  return {.form = {.name = "memory-efficient",
                   .query_tile = width <= 128 ? 64 : 32,
                   .key_tile = width <= 64 ? 64 : 128,
                   .products = 8,
                   .scores = Scores::twice_before_maximum,
                   .row_sum = RowSum::warps,
                   .log_sum = LogSum::divided,
                   .keeps_output_in_memory = width > 128,
                   .dropout = DropoutOrder::efficient}};
}

BackwardKernel efficient_backward(const Problem& x, bool is_deterministic) {
  const std::int64_t width = std::max(x.width, x.value_width);
  const bool is_half = x.type != formats::fp32;
  const bool is_wide = is_half && width > 64;
  BackwardKernel kernel{.form = {.name = "memory-efficient",
                                 .query_tile = width > 64 ? 128 : 64,
                                 .key_tile = is_wide && width <= 128 ? 128 : 64,
                                 .products = 8,
                                 .probability = Probability::exponential,
                                 .uses_rounded_probability = true,
                                 .scales_early = true,
                                 .query_gradient = QueryGradient::chained,
                                 .dropout = DropoutOrder::efficient,
                                 .keys_come_first = true,
                                 .adds_tiles = !is_half}};
  BackwardForm& form = kernel.form;
  form.delta = {.threads = form.key_tile / 32, .descends = false};
  if (!is_deterministic) {
    const std::int64_t tiles = formats::divided_up(x.keys, form.key_tile),
                       heads = x.batch * x.heads;
    std::int64_t splits = tiles;
    if (heads >= 256 && x.keys <= 2 * form.key_tile) splits = 1;
    if (width > 128 || !is_half) splits = std::min(splits, 200 / heads);
    form.splits = static_cast<int>(std::max<std::int64_t>(1, splits));
  }
  return kernel;
}

ForwardKernel cudnn_forward(const Problem& x, bool gives_log_sums) {
  const bool is_one_query = x.queries == 1 && !gives_log_sums;
  const bool is_short = x.keys <= 256;
  return {.form = {.name = "cuDNN",
                   .query_tile = !is_one_query ? 128
                                 : is_short    ? 64
                                               : 16,
                   .key_tile = is_one_query && is_short ? 64 : 128,
                   .key_warps = is_one_query && !is_short ? 4 : 1,
                   .scores = is_one_query ? Scores::twice_before_maximum : Scores::before_maximum,
                   .row_sum = RowSum::fresh,
                   .log_sum = LogSum::fused_ln2,
                   .flushes_exponentials = true,
                   .approximates_reciprocal = true,
                   .dropout = DropoutOrder::cudnn}};
}

BackwardKernel cudnn_backward(const Problem& x) {
  return {.form = {.name = "cuDNN",
                   .query_tile = 64,
                   .key_tile = x.width > 128 ? 64 : 128,
                   .probability = Probability::fused,
                   .delta = {.threads = cudnn_width(x.value_width) / 8, .adds_pairs = true},
                   .scales_early = true,
                   .query_gradient = QueryGradient::added,
                   .dropout = DropoutOrder::cudnn}};
}

std::string ForwardKernel::description() const {
  std::string text = std::string(form.name) + ": " +
                     tiles_in_words(form.query_tile, form.key_tile) +
                     (form.keys_descend ? ", last first" : ", first first");
  if (splits > 1) text += ", " + counted(splits, "split");
  return text;
}

std::string BackwardKernel::description() const {
  std::string text = std::string(form.name) + ": " + tiles_in_words(form.query_tile, form.key_tile);
  if (form.query_gradient == QueryGradient::chained)
    text += ", " + counted(form.splits, "split") + " of keys";
  else if (form.query_sums != 0)
    text += ", " + counted(form.query_sums, "sum") + " of dQ";
  else
    text += ", dQ added as tiles of keys arrive";
  return text;
}

ForwardResult compute(const ForwardKernel& kernel, const Problem& problem) {
  if (kernel.splits == 1) return compute_forward(kernel.form, problem);
  return compute_split_forward(kernel.form, problem, kernel.splits);
}

}  // namespace guardbit::emulator::attention
