#include "emulator/gemm/atlas/convolutions/convolution_segments.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

#include "formats/support/whole_division.hpp"

namespace guardbit::emulator::atlas {
namespace {

using formats::divided_up;

/// Clusters of so many thread blocks that run at once on 132 multiprocessors; 0: not known.
std::int64_t clusters_at_once(std::int64_t blocks) {
  constexpr auto known = std::to_array<std::int64_t>({0, 132, 66, 39, 30, 22, 17, 15, 15});
  if (blocks == 16) return 7;
  return blocks < std::ssize(known) ? known.at(static_cast<std::size_t>(blocks)) : 0;
}

/// The product that a pass is, in tiles.
struct Tiles {
  std::int64_t rows = 0, columns = 0, depth = 0;
};

Tiles tiles_of(const SegmentedKernel& kernel, const ConvolutionShape& x, ConvolutionPass pass) {
  const std::int64_t places = x.filter * x.filter;
  const std::int64_t pixels = x.images * output_side(x.rows, x) * output_side(x.columns, x);
  switch (pass) {
    case ConvolutionPass::forward:
      return {divided_up(pixels, kernel.rows), divided_up(x.outputs, kernel.columns),
              divided_up(x.channels, kernel.depth) * places};
    case ConvolutionPass::data:
      return {divided_up(x.images * x.rows * x.columns, kernel.rows),
              divided_up(x.channels, kernel.columns), divided_up(x.outputs, kernel.depth) * places};
    default:
      return {divided_up(x.outputs, kernel.rows), divided_up(x.channels, kernel.columns) * places,
              divided_up(pixels, kernel.depth)};
  }
}

/// Of the last wave of clusters K is left whole where it has no more elements than that, whatever
/// room there is; 0: not known.
std::int64_t whole_elements(const SegmentedKernel& kernel) {
  switch (kernel.rows * kernel.columns) {
    case 64 * 64: return 640;
    case 64 * 128: return 448;
    case 128 * 128: return 384;
    case 128 * 256: return 288;
    default: return 0;
  }
}

/// So many tiles the longest segment must lose, or K is not cut further. A cut costs as much as
/// some elements of K, the more the smaller the tile of D is; in BF16 eight times as much.
std::int64_t least_gain(const SegmentedKernel& kernel, bool is_bf16) {
  const std::int64_t area = kernel.rows * kernel.columns;
  const std::int64_t cost = (296 * area + 504 * 64 * 64) * (is_bf16 ? 8 : 1);
  return divided_up(cost, area * kernel.depth);
}

/// Twice as many segments as before while that gains enough, or in the end as many as fit.
std::int64_t doubled_segments(std::int64_t depth, std::int64_t most, std::int64_t gain) {
  const auto longest = [&](std::int64_t count) { return divided_up(depth, count); };
  std::int64_t count = 1;
  while (2 * count <= most && longest(count) - longest(2 * count) >= gain) count *= 2;
  if (count < most && 2 * count > most && longest(count) - longest(most) >= gain) count = most;
  return divided_up(depth, longest(count));
}

}  // namespace

std::optional<Segments> segments_of(const SegmentedKernel& kernel, const ConvolutionShape& shape,
                                    ConvolutionPass pass) {
  const Tiles tiles = tiles_of(kernel, shape, pass);
  const std::int64_t clusters = divided_up(tiles.rows, kernel.cluster_rows) *
                                divided_up(tiles.columns, kernel.cluster_columns);
  const std::int64_t at_once = clusters_at_once(kernel.cluster_rows * kernel.cluster_columns);
  if (at_once == 0) return std::nullopt;
  if (clusters > at_once) {
    // Those of full waves have whole K; those of the last one may be cut where others would fit.
    const std::int64_t last = clusters % at_once;
    const bool is_whole =
        last == 0 || at_once / last < 2 || tiles.depth * kernel.depth <= whole_elements(kernel);
    return is_whole ? std::optional(Segments{}) : std::nullopt;
  }
  const std::int64_t most = at_once / clusters;
  if (most < 2) return Segments{};

  // Of more segments than a few, if each is so long, a second kernel adds the sums.
  constexpr std::int64_t few = 8, elements_of_segment = 1056, most_elements = 56 * 32;
  const std::int64_t long_ones = tiles.depth / divided_up(elements_of_segment, kernel.depth);
  if (long_ones > few && most > few) {
    const std::int64_t count = std::min(most, long_ones);
    // Of very many segments some are left out in a way that is not known.
    if (count > most_elements / kernel.depth) return std::nullopt;
    // Nor where so many segments of the longest one's length are too many: of 215 such grids in
    // TF32 26 had that many, 185 one or a few less.
    const bool is_uneven = divided_up(tiles.depth, divided_up(tiles.depth, count)) != count;
    if (is_uneven && shape.numbers == Numbers::tf32) return std::nullopt;
    return Segments{count, true};
  }
  const std::int64_t gain = least_gain(kernel, shape.numbers == Numbers::bf16);
  const Segments result{doubled_segments(tiles.depth, most, gain)};
  // One kernel's gradients of weights are cut for a gain of 16 to 20 tiles; which, is not known.
  const bool is_odd_one = pass == ConvolutionPass::weight && shape.numbers == Numbers::tf32 &&
                          kernel.rows == 128 && kernel.columns == 64;
  if (is_odd_one && (doubled_segments(tiles.depth, most, 16) != result.count ||
                     doubled_segments(tiles.depth, most, 20) != result.count))
    return std::nullopt;
  return result;
}

}  // namespace guardbit::emulator::atlas
