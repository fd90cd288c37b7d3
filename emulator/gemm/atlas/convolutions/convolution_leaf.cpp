#include "emulator/gemm/atlas/convolutions/convolution_leaf.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "emulator/gemm/atlas/convolutions/listed_convolutions.hpp"
#include "emulator/gemm/atlas/leaf.hpp"
#include "emulator/gemm/atlas/packed_trees.hpp"

namespace guardbit::emulator::atlas {

namespace {

// By tools/scripts/atlas/fit_convolutions.py from what record_convolutions.py recorded.
constexpr char convolution_nodes[] =
#include "emulator/gemm/atlas/convolutions/convolution_nodes.inc"
    ;
constexpr char convolution_thresholds[] =
#include "emulator/gemm/atlas/convolutions/convolution_thresholds.inc"
    ;
constexpr auto convolution_thresholds_of_feature = std::to_array<std::uint32_t>({
#include "emulator/gemm/atlas/convolutions/convolution_thresholds_of_feature.inc"
});
constexpr char convolution_labels[] =
#include "emulator/gemm/atlas/convolutions/convolution_labels.inc"
    ;

/// Where the trees of f16, bf16, tf32 and f32 begin, of each pass; f16 and bf16 have one in common.
/// Then second ones, of calls for which the first know no plan; the last tree tells kernels apart.
constexpr std::size_t trees_once = 12;
constexpr auto convolution_roots = std::to_array<std::uint32_t>({
#include "emulator/gemm/atlas/convolutions/convolution_roots.inc"
});
static_assert(convolution_roots.size() == 2 * trees_once + 1,
              "fit_convolutions.py has to be run once more, with second");

/// As WAVES of tools/scripts/atlas/convolution_kinds.py.
constexpr std::array<Wave, 10> waves = {{{64, 64, 7, 15},
                                         {64, 64, 8, 15},
                                         {64, 128, 7, 15},
                                         {64, 128, 1, 132},
                                         {64, 256, 4, 30},
                                         {128, 64, 7, 15},
                                         {128, 64, 8, 15},
                                         {128, 64, 5, 22},
                                         {128, 128, 8, 15},
                                         {128, 128, 4, 30}}};

/// In FP64: shapes of a recording may be such that their products exceed 64 bits.
std::array<double, 29> features_of(const ConvolutionShape& x) {
  const std::int64_t rows = output_side(x.rows, x), columns = output_side(x.columns, x);
  const auto number = [](std::int64_t y) { return static_cast<double>(y); };
  const auto alignment = [&](std::int64_t y) { return number(std::min<std::int64_t>(16, y & -y)); };
  const auto tiles = [](double y, double z) { return std::ceil(y / 64) * std::ceil(z / 64); };
  const double images = number(x.images), channels = number(x.channels),
               outputs = number(x.outputs);
  const double places = number(x.filter) * number(x.filter);
  const double pixels = images * number(rows) * number(columns);
  const double image = images * number(x.rows) * number(x.columns);
  return {images,
          channels,
          number(x.rows),
          number(x.columns),
          outputs,
          number(x.filter),
          number(x.stride),
          number(x.padding),
          x.channels_last ? 1.0 : 0.0,
          x.deterministic ? 1.0 : 0.0,
          number(rows),
          number(columns),
          alignment(x.channels),
          alignment(x.outputs),
          alignment(x.columns),
          alignment(columns),
          channels * places,
          outputs * places,
          pixels,
          image,
          pixels * outputs,
          image * channels,
          pixels * outputs * channels * places,
          tiles(pixels, outputs),
          tiles(image, channels),
          tiles(channels * places, outputs),
          std::min(channels, outputs),
          std::max(channels, outputs),
          x.numbers == Numbers::bf16 ? 1.0 : 0.0};
}

ConvolutionLeaf leaf_of(const std::array<double, 29>& features, std::size_t tree) {
  static const PackedTrees trees(convolution_nodes, convolution_thresholds,
                                 convolution_thresholds_of_feature, convolution_labels);
  const PackedLabel& label = trees.leaf(features, convolution_roots.at(tree));
  ConvolutionLeaf leaf;
  leaf.form = static_cast<ConvolutionForm>(label.kind / 2);
  leaf.fma = label.kind % 2 == 1;
  leaf.tile = label.tile;
  leaf.parts = std::max<std::int64_t>(1, label.rule);
  // How operands become TF32, and four times the place among the waves.
  const int number = label.columns / 8;
  leaf.input = static_cast<TensorCoreInput>(number % 4);
  if (leaf.form == ConvolutionForm::last_segments)
    leaf.wave = waves.at(static_cast<std::size_t>(number / 4));
  leaf.agree = label.agree;
  return leaf;
}

/// Pixels of the smallest chunk.
constexpr std::int64_t least_chunk = 64;

bool has_chunks(const ConvolutionLeaf& leaf, const ConvolutionShape& x) {
  return leaf.form == ConvolutionForm::per_place &&
         output_side(x.rows, x) * output_side(x.columns, x) > least_chunk;
}

bool is_in_16_bits(const ConvolutionShape& x) {
  return x.numbers == Numbers::f16 || x.numbers == Numbers::bf16;
}

/// Gradients of weights in 16 bits whose kernels the first trees do not tell apart, where channels
/// do not lie together: TF32's unit may multiply, and the last part's sum may come first.
bool is_told_twice(const ConvolutionLeaf& leaf, const ConvolutionShape& x) {
  return is_in_16_bits(x) && !x.channels_last &&
         (leaf.form == ConvolutionForm::split || leaf.form == ConvolutionForm::split_last_first);
}

/// What the first tree says, with the kernel that the last tree takes where that is sure enough.
ConvolutionLeaf with_kernel(ConvolutionLeaf first, const ConvolutionLeaf& kernel) {
  constexpr int sure_enough = 900;
  first.agree = std::min(first.agree, kernel.agree);
  const bool is_cut =
      kernel.form == ConvolutionForm::split || kernel.form == ConvolutionForm::split_last_first;
  if (!is_cut || kernel.agree < sure_enough) return first;
  first.form = kernel.form;
  first.input = kernel.input;
  return first;
}

/// What the trees say.
ConvolutionLeaf leaf_by_trees(const ConvolutionShape& shape, ConvolutionPass pass) {
  const std::array<double, 29> features = features_of(shape);
  const auto tree = 4 * static_cast<std::size_t>(pass) + static_cast<std::size_t>(shape.numbers);
  ConvolutionLeaf leaf = leaf_of(features, tree);
  // The first trees do not say how large a chunk is.
  if (leaf.form == ConvolutionForm::unknown || has_chunks(leaf, shape))
    leaf = leaf_of(features, trees_once + tree);
  else if (pass == ConvolutionPass::weight && is_told_twice(leaf, shape))
    leaf = with_kernel(leaf, leaf_of(features, 2 * trees_once));
  // Products of places of such filters follow each other in an order that is not known.
  constexpr std::int64_t large_filter = 16;
  if (leaf.form == ConvolutionForm::per_place && shape.filter >= large_filter) return {};
  // How several chunks' sums are rounded in 16 bits is not known.
  if (has_chunks(leaf, shape) && is_in_16_bits(shape)) return {};
  // Of FP32 images whose channels lie together the first trees do not tell operands that a kernel
  // rounds from those that the unit reads as they are. Strides of one channel are those of either
  // layout. Which of two tilings it is the trees know from few results.
  constexpr int unsure = 900;
  const bool is_read_as_stored = shape.numbers == Numbers::tf32 && shape.channels_last &&
                                 !leaf.fma && leaf.input == TensorCoreInput::as_stored;
  const bool is_tiled =
      leaf.form == ConvolutionForm::tiled_narrow || leaf.form == ConvolutionForm::tiled_wide;
  if (is_read_as_stored || is_tiled || (shape.channels_last && shape.channels == 1))
    leaf.agree = std::min(leaf.agree, unsure);
  return leaf;
}

bool has_same_order(const ConvolutionLeaf& a, const ConvolutionLeaf& b) {
  return a.form == b.form && a.fma == b.fma && a.eights == b.eights && a.tile == b.tile &&
         a.input == b.input && a.parts == b.parts && a.restart == b.restart;
}

/// More than the list can be surrounded by.
constexpr std::size_t never = std::size_t{1} << 20;

/// From how many steps on what the calls around say is a rule: of output, gradient of data and of
/// weights. Measured with 63,000 calls of all numbers but FP32 (docs/ATLAS.md).
std::size_t steps_of_rule(const SurroundedLeaf& x, const ConvolutionShape& shape,
                          ConvolutionPass pass, bool trees_agree) {
  if (shape.numbers == Numbers::f32) return never;
  const auto of_pass = [&](std::size_t output, std::size_t data, std::size_t weight) {
    return std::array{output, data, weight}.at(static_cast<std::size_t>(pass));
  };
  if (!x.is_between_sides) return trees_agree ? of_pass(2, 2, 5) : of_pass(2, 2, never);
  if (!trees_agree) return never;
  return x.is_between_images ? of_pass(5, 8, never) : of_pass(4, 5, 4);
}

/// Of 1000 calls so many agree with the calls around, or more.
int agree_of(const SurroundedLeaf& x, const ConvolutionShape& shape, ConvolutionPass pass,
             bool trees_agree) {
  if (x.steps >= steps_of_rule(x, shape, pass, trees_agree)) return rule_agrees;
  constexpr int between_images = 950, between_sides = 900, beside_others = 850;
  if (x.steps == 0) return beside_others;
  return x.is_between_sides ? between_sides : between_images;
}

}  // namespace

ConvolutionLeaf leaf_of(const ConvolutionShape& shape, ConvolutionPass pass) {
  if (const std::optional<ConvolutionLeaf> listed = listed_leaf(shape, pass)) return *listed;
  const ConvolutionLeaf told = leaf_by_trees(shape, pass);
  const std::optional<SurroundedLeaf> surrounded = leaf_between_listed(shape, pass);
  if (!surrounded) return told;
  ConvolutionLeaf leaf = surrounded->leaf;
  leaf.agree = agree_of(*surrounded, shape, pass, has_same_order(leaf, told));
  return leaf;
}

}  // namespace guardbit::emulator::atlas
