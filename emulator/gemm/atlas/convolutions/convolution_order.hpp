#pragma once

#include <cstdint>

#include "emulator/gemm/atlas/product_call.hpp"

// Convolutions as cuDNN meets them, and the orders in which its kernels add.
namespace guardbit::emulator::atlas {

/// What a convolution computes: its output, or the gradient of its input or of its weights.
enum class ConvolutionPass : std::uint8_t { forward, data, weight };

/// A convolution in one group with square filters and equal strides and paddings, without dilation,
/// as cuDNN 9 meets it.
struct ConvolutionShape {
  std::int64_t images = 1, channels = 1, rows = 1, columns = 1;
  std::int64_t outputs = 1, filter = 1, stride = 1, padding = 0;
  bool channels_last = false;
  /// tf32: FP32 tensors with TF32 allowed
  Numbers numbers = Numbers::f32;
  /// torch.backends.cudnn.deterministic
  bool deterministic = false;
};

/// Rows or columns of the output, of so many of the input.
constexpr std::int64_t output_side(std::int64_t side, const ConvolutionShape& x) {
  return (side + 2 * x.padding - x.filter) / x.stride + 1;
}

/// How K is walked. Of output and data it goes over channels and the filter's places, of weights
/// over images and pixels.
enum class ConvolutionForm : std::uint8_t {
  /// a kernel whose order the atlas does not know, or that adds by atomics
  unknown,
  /// channels outermost
  outermost,
  /// channels innermost
  innermost,
  /// a chain over the channels of each place of the filter; their sums in ascending order, of each
  /// chunk of output pixels for itself
  per_place,
  /// channels innermost, in the order of loads without shared memory
  loads,
  /// some channels of all places, then the next ones; filled up with zeros
  blocks,
  /// the same, the places in descending order
  blocks_descending,
  /// 32 lanes take pixels in turn; their sums are added as a warp's shuffles do
  lanes,
  chain,
  /// a chain of each image; their sums in ascending order
  images,
  /// tile t of K goes to part t modulo parts; of outputs and data block t of channels
  split,
  /// the same; the last part's sum begins
  split_last_first,
  /// cuDNN's wgrad2d_shmem_tiling with runs of two pixels, or of six
  tiled_narrow,
  tiled_wide,
  /// as split, but each part adds to what the one before left in the result's numbers
  split_in_place,
  /// Winograd's transforms of 3 x 3 and 4 x 4
  transformed,
  /// consecutive segments of whole tiles, the last ones a tile longer; their sums are added in
  /// pairs from the last one on, or in descending order. Of outputs and data the tiles are those of
  /// blocks, of data in descending order.
  segments,
  segments_descending,
  /// runs of K whose sums a second kernel adds, as cuBLAS cuts them
  reduced,
  /// the same; each sum is rounded to the result's numbers first
  reduced_in_16_bits,
  /// segments, but of the tiles of D that the last wave of thread blocks computes alone; of others
  /// one chain over the blocks
  last_segments,
  /// lanes of multiply-adds share K, as cuBLAS' kernels for products of vectors and of small
  /// matrices have it: each takes a run in turn; their sums are added as a warp's shuffles do, or
  /// in ascending order
  shared_halves,
  shared_ascending,
  /// the same of each image; the images' sums in ascending order
  images_shared_halves,
  images_shared_ascending,
  /// as reduced, in runs of whole tiles of 64 elements
  reduced_by_64,
  /// as reduced, but each part adds to what the one before left
  reduced_in_place,
};

constexpr bool is_shared(ConvolutionForm form) {
  return form >= ConvolutionForm::shared_halves && form <= ConvolutionForm::images_shared_ascending;
}

/// How FP32 operands become TF32: as the unit reads what is stored; rounded to the nearest, ties
/// away from zero, by the kernel that changes their layout; or cut off. Or operands in 16 bits
/// become FP32 numbers that TF32's unit multiplies.
enum class TensorCoreInput : std::uint8_t { as_stored, to_nearest, truncated, widened };

/// How thread blocks go over D: its rows are pixels, its columns channels.
struct Wave {
  /// of a tile
  std::int64_t rows = 0, columns = 0;
  /// tiles of a cluster, along the rows; and clusters at once
  std::int64_t cluster = 1, clusters = 1;

  /// Whether an element of D [`of_rows`, `of_columns`] belongs to the last wave, which is not full.
  bool is_in_last(std::int64_t row, std::int64_t column, std::int64_t of_rows,
                  std::int64_t of_columns) const;
};

struct ConvolutionLeaf {
  ConvolutionForm form = ConvolutionForm::unknown;
  /// multiply-adds in FP32 of CUDA cores, not tensor cores
  bool fma = false;
  /// tensor cores that take 8 elements of K at once, by mma.sync
  bool eights = false;
  /// channels of a block, or elements of a tile of K; where one chain or each image's is walked in
  /// tiles, or K is cut in runs, an incomplete tile comes first; of per_place the pixels of a
  /// chunk, 0: all; where lanes share K the run that each takes: 0 all that it gets
  int tile = 0;
  /// Where lanes share K: after so many elements a lane's chain is added to its sum; 0: never.
  int restart = 0;
  TensorCoreInput input = TensorCoreInput::as_stored;
  /// of K, or lanes that share it
  std::int64_t parts = 1;
  /// of last_segments
  Wave wave;
  /// Of 1000 recorded calls of the leaf at least so many agree; of few calls less is said.
  int agree = 0;
};

}  // namespace guardbit::emulator::atlas
