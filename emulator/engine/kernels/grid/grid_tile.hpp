#pragma once

#include <cstdint>

#include "emulator/model/accumulator.hpp"

// The inner loops of sums that are cut on grids (two stages, two grids) or rounded one by one
// (pairwise), in numbers of FP64, as tables of functions for each instruction set.
namespace guardbit::emulator::grids {

inline constexpr int tile_rows = 4, tile_columns = 8;

/// With any exponent of FP32 it is below those of products, and with itself an exponent of FP64.
inline constexpr int exponent_of_zero = -450;

enum class Result : std::uint8_t {
  fp32,
  /// a negative sum that becomes zero stays negative
  fp32_signed_zero,
  fp16,
  /// the upper half of a code of FP32
  bf16
};

/// What a tile's code depends on.
struct Arithmetic {
  Summation summation = Summation::two_stage;
  /// products of a block
  int terms = 0;
  Interleave interleave = Interleave::none;
  /// products are floored, else cut toward zero
  bool floors = false;
  /// results below the normal range become zeros
  bool flushes = false;
  Result result = Result::fp32;

  friend constexpr bool operator==(const Arithmetic&, const Arithmetic&) = default;
};

/// Are sums higher by the number of negative products (grid_blocks.hpp)?
constexpr bool counts_negatives(const Arithmetic& x) {
  return x.summation == Summation::two_stage && !x.floors;
}
/// Is a zero of B a tiny number of its sign? Its products ask for no grid either.
constexpr bool has_tiny_zeros(const Arithmetic& x) { return x.summation == Summation::two_grids; }
inline constexpr double tiny_zero = 0x1p-300;
/// What B's numbers are multiplied by.
constexpr double nudge_of(const Arithmetic& x) {
  return counts_negatives(x) || x.summation == Summation::two_grids ? 1 + 0x1p-30 : 1;
}

/// Of a line in a block: words of four exponents each, 16 bits an element. Where two sets of
/// products are summed apart, the first half of them are the first set's.
constexpr int exponent_words(const Arithmetic& x) { return (x.terms + 3) / 4; }
/// And two words of a bit an element where negative products are counted: which factors are
/// negative, which positive. A second set's begin at bit 8.
constexpr int words(const Arithmetic& x) {
  return exponent_words(x) + (counts_negatives(x) ? 2 : 0);
}
/// Where a block's i-th element stands in the words.
constexpr int place_of(const Arithmetic& x, int i) {
  return x.interleave == Interleave::even_odd ? i / 2 + i % 2 * 8 : i;
}
/// Of a block in a panel of so many lines, in numbers of FP64.
constexpr std::int64_t block_size(const Arithmetic& x, std::int64_t lines) {
  return (x.terms + words(x)) * lines;
}

/// The numbers of an arithmetic, as powers of two.
struct Rule {
  double kept = 0, total_kept = 0, addend_kept = 0, cutoff = 0;
  /// the grid of the sum, of that of the products
  double finer = 0;
  /// the exponent of a zero addend
  double least_weight = 0;
  /// of products whose sums the tiles leave to the model
  double weight_limit = 0;
  /// the largest finite result
  double largest_result = 0;
};

/// Adds `length` products to the tile of sums, row by row; false where a number was not finite or
/// beyond the limits. Of every block a panel has the numbers of its lines, k by k, and then word by
/// word their words. Exponents are such that those of a product add to FP64's field of its grid.
using Tile = bool (*)(const Rule& rule, const double* a, const double* b, std::int64_t length,
                      double* sums);

/// Null where this CPU has not the instructions or there is no such tile.
Tile tile_avx512(const Arithmetic& arithmetic);
Tile tile_avx2(const Arithmetic& arithmetic);
Tile tile_neon(const Arithmetic& arithmetic);

}  // namespace guardbit::emulator::grids
