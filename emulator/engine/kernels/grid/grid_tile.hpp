#pragma once

#include <cstddef>
#include <cstdint>

#include "emulator/model/accumulator.hpp"

// The inner loops of sums that are cut on grids (two stages, two grids) or rounded one by one
// (pairwise), in numbers of FP64, as tables of functions for each instruction set.
namespace guardbit::emulator::grids {

inline constexpr int tile_rows = 4, tile_columns = 8;

/// Its product with any weight is below the products of weights of FP32, and its square no
/// subnormal number, on a grid 24 bits below, too.
inline constexpr double weight_of_zero = 0x1p-450;

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
/// beyond the limits. Of every k a panel has the numbers of its lines and then their weights:
/// 2^exponent, of A times `kept`, so that the weight of a product is its grid; of a zero
/// weight_of_zero.
using Tile = bool (*)(const Rule& rule, const double* a, const double* b, std::int64_t length,
                      double* sums);

/// Null where this CPU has not the instructions or there is no such tile.
Tile tile_avx512(const Arithmetic& arithmetic);
Tile tile_avx2(const Arithmetic& arithmetic);
Tile tile_neon(const Arithmetic& arithmetic);

}  // namespace guardbit::emulator::grids
