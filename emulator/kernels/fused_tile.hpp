#pragma once

// A tile of 4 rows and `Lanes::columns` columns of D over a chain of blocks.

#include <cstddef>
#include <cstdint>

#include "emulator/kernels/fused_panels.hpp"

namespace guardbit::emulator::fused {

/// What a tile reads and writes. A and B begin at its first block.
struct TileOperands {
  const std::byte *a_values, *a_codes, *a_exponents, *a_signs;
  const std::byte *b_values, *b_codes, *b_exponents, *b_signs;
  int blocks = 0;
  std::array<int, 4> lowest{};   ///< of A's unit and B's k-th unit together: the exponent whose
                                 ///< products have the code 128
  const std::byte* c = nullptr;  ///< null: +0
  std::byte* d = nullptr;
  std::ptrdiff_t c_stride = 0, d_stride = 0;  ///< bytes from row to row
};

/// Numbers of a row that a kernel takes at run time.
struct TileRule {
  int kept_fraction_bits = 0, zero_exponent = 0;
};

using TileFunction = void (*)(const TileRule&, const TileOperands&);

/// Lanes: the instruction set's vectors (avx512_lanes.hpp). Wide: exponents in 16 bits, results
/// anywhere in FP32's range.
template <class Lanes, int BlockK, Result Kind, Composition Blocks, bool Wide>
void sum_tile(const TileRule& rule, const TileOperands& x) {
  using Vector = typename Lanes::Vector;
  constexpr int rows = tile_rows, vectors = Lanes::vectors;
  constexpr int groups = (BlockK + Lanes::sign_group - 1) / Lanes::sign_group;
  using Maximum = typename Lanes::template Maximum<Wide>;
  const typename Lanes::template Constants<Kind, Wide> constants(rule);

  using Tile = Vector[tile_rows][Lanes::vectors];
  Tile sum;     // C, then the results of blocks
  Tile offset;  // X
  Tile total;   // of composed rows: C
  for (int r = 0; r < rows; ++r) {
    for (int v = 0; v < vectors; ++v) {
      const std::byte* const c = x.c == nullptr ? nullptr : x.c + r * x.c_stride;
      sum[r][v] = Lanes::template load_addend<Kind>(c, v);
      if constexpr (Blocks != Composition::chain) total[r][v] = sum[r][v];
    }
  }

  const std::byte *a = x.a_values, *b = x.b_values;
  const std::byte* a_codes = Wide ? x.a_exponents : x.a_codes;
  const std::byte* b_codes = Wide ? x.b_exponents : x.b_codes;
  const std::byte *a_signs = x.a_signs, *b_signs = x.b_signs;
  Maximum maximum;
  maximum.clear();
  for (int k = 0; k < BlockK; ++k) {
    maximum.include(a_codes, b_codes);
    a_codes += Maximum::a_step;
    b_codes += Maximum::b_step;
  }
  for (int block = 0; block < x.blocks; ++block) {
    const bool starts_from_zero = Blocks == Composition::separate_halves ||
                                  (Blocks == Composition::chained_halves && block % 2 == 0);
    Tile accumulator;
    maximum.finish(constants, x.lowest);
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) {
      const auto negatives = Lanes::template negative_products<groups>(a_signs, b_signs, v);
#pragma GCC unroll 4
      for (int r = 0; r < rows; ++r) {
        const Vector addend =
            Blocks != Composition::chain && starts_from_zero ? Lanes::zero() : sum[r][v];
        offset[r][v] = Lanes::offset(constants, maximum.exponent(constants, v, r), addend);
        accumulator[r][v] = Lanes::start(constants, offset[r][v],
                                         Lanes::template low_bits<groups>(negatives, r), addend);
      }
    }
    a_signs += groups * Lanes::a_sign_step;
    b_signs += groups * Lanes::b_sign_step;

    // The largest exponents of the next block are found while this one is summed.
    maximum.clear();
    if (block + 1 == x.blocks) {
      a_codes -= BlockK * Maximum::a_step;
      b_codes -= BlockK * Maximum::b_step;
    }
#pragma GCC unroll 4
    for (int k = 0; k < BlockK; ++k) {
      Vector factors[Lanes::vectors];
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) factors[v] = Lanes::load(b, v);
#pragma GCC unroll 4
      for (int r = 0; r < rows; ++r) {
        const Vector factor = Lanes::broadcast(a, r);
#pragma GCC unroll 4
        for (int v = 0; v < vectors; ++v)
          accumulator[r][v] = Lanes::multiply_add(factor, factors[v], accumulator[r][v]);
      }
      maximum.include(a_codes, b_codes);
      a += Lanes::a_step;
      b += Lanes::b_step;
      a_codes += Maximum::a_step;
      b_codes += Maximum::b_step;
    }
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) {
#pragma GCC unroll 4
      for (int r = 0; r < rows; ++r) {
        const Vector exact = Lanes::subtract(accumulator[r][v], offset[r][v]);
        const Vector result = Lanes::template round<Kind, Wide>(constants, exact);
        if constexpr (Blocks == Composition::chain) {
          sum[r][v] = result;
        } else if constexpr (Blocks == Composition::chained_halves) {
          sum[r][v] = result;
          if (block % 2 == 1)
            total[r][v] = Lanes::template add<Kind>(constants, total[r][v], result);
        } else {
          if (block % 2 == 1)
            total[r][v] = Lanes::template add<Kind>(
                constants, total[r][v], Lanes::template add<Kind>(constants, sum[r][v], result));
          sum[r][v] = result;
        }
      }
    }
  }
  for (int r = 0; r < rows; ++r) {
    const std::byte* const c = x.c == nullptr ? nullptr : x.c + r * x.c_stride;
    for (int v = 0; v < vectors; ++v) {
      const Vector result = Blocks == Composition::chain ? sum[r][v] : total[r][v];
      Lanes::template store_result<Kind>(x.d + r * x.d_stride, v, result, c);
    }
  }
}

}  // namespace guardbit::emulator::fused
