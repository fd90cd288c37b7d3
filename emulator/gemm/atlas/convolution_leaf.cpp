#include "emulator/gemm/atlas/convolution_leaf.hpp"

#include <algorithm>
#include <array>

#include "emulator/gemm/atlas/packed_trees.hpp"
#include "emulator/gemm/atlas/scope.hpp"
#include "formats/support/whole_division.hpp"

namespace guardbit::emulator::atlas {

namespace {

// By tools/scripts/atlas/fit_convolutions.py from what record_convolutions.py recorded.
constexpr char convolution_nodes[] =
#include "emulator/gemm/atlas/convolution_nodes.inc"
    ;
constexpr char convolution_thresholds[] =
#include "emulator/gemm/atlas/convolution_thresholds.inc"
    ;
constexpr auto convolution_thresholds_of_feature = std::to_array<std::uint32_t>({
#include "emulator/gemm/atlas/convolution_thresholds_of_feature.inc"
});
constexpr char convolution_labels[] =
#include "emulator/gemm/atlas/convolution_labels.inc"
    ;

/// Where the trees of f16, bf16, tf32 and f32 begin, of each pass.
constexpr std::array<std::uint32_t, 12> convolution_roots = {
#include "emulator/gemm/atlas/convolution_roots.inc"
};

std::int64_t output_of(std::int64_t side, const ConvolutionShape& x) {
  return (side + 2 * x.padding - x.filter) / x.stride + 1;
}

std::array<double, 28> features_of(const ConvolutionShape& x) {
  using formats::divided_up;
  const std::int64_t q = output_of(x.rows, x), r = output_of(x.columns, x);
  const auto alignment = [](std::int64_t y) { return std::min<std::int64_t>(16, y & -y); };
  const auto tiles = [](std::int64_t y, std::int64_t z) {
    return divided_up(y, std::int64_t{64}) * divided_up(z, std::int64_t{64});
  };
  const std::int64_t places = x.filter * x.filter, pixels = x.images * q * r,
                     image = x.images * x.rows * x.columns;
  const std::array<std::int64_t, 28> whole = {x.images,
                                              x.channels,
                                              x.rows,
                                              x.columns,
                                              x.outputs,
                                              x.filter,
                                              x.stride,
                                              x.padding,
                                              x.channels_last ? 1 : 0,
                                              x.deterministic ? 1 : 0,
                                              q,
                                              r,
                                              alignment(x.channels),
                                              alignment(x.outputs),
                                              alignment(x.columns),
                                              alignment(r),
                                              x.channels * places,
                                              x.outputs * places,
                                              pixels,
                                              image,
                                              pixels * x.outputs,
                                              image * x.channels,
                                              pixels * x.outputs * x.channels * places,
                                              tiles(pixels, x.outputs),
                                              tiles(image, x.channels),
                                              tiles(x.channels * places, x.outputs),
                                              std::min(x.channels, x.outputs),
                                              std::max(x.channels, x.outputs)};
  std::array<double, 28> result{};
  std::ranges::transform(whole, result.begin(), [](std::int64_t y) { return double(y); });
  return result;
}

/// Parts of K. Below 200: so many; 200 + w: as many as give the multiprocessors w thread blocks
/// each, of a gradient with a row for each output channel.
std::int64_t parts_of(const ConvolutionShape& x, const PackedLabel& label) {
  using formats::divided_up;
  if (label.rule < 200) return std::max<std::int64_t>(1, label.rule);
  const std::int64_t blocks =
      divided_up(x.outputs, std::int64_t{label.columns}) *
      divided_up(x.channels * x.filter * x.filter, std::int64_t{label.rows});
  return std::max<std::int64_t>(1, scope.multiprocessors * (label.rule - 200) / blocks);
}

}  // namespace

ConvolutionLeaf leaf_of(const ConvolutionShape& shape, ConvolutionPass pass) {
  static const PackedTrees trees({convolution_nodes, sizeof convolution_nodes - 1},
                                 {convolution_thresholds, sizeof convolution_thresholds - 1},
                                 convolution_thresholds_of_feature,
                                 {convolution_labels, sizeof convolution_labels - 1});
  const auto tree = 4 * static_cast<std::size_t>(pass) + static_cast<std::size_t>(shape.numbers);
  const PackedLabel& label = trees.leaf(features_of(shape), convolution_roots.at(tree));
  ConvolutionLeaf leaf;
  leaf.form = static_cast<ConvolutionForm>(label.kind / 4);
  leaf.fma = label.kind % 4 == 1;
  leaf.tile = label.tile;
  leaf.parts = parts_of(shape, label);
  leaf.agree = label.agree;
  return leaf;
}

}  // namespace guardbit::emulator::atlas
