#pragma once

// Tiles of sums on grids in the vectors of an instruction set. Included where that is allowed.
//
// Every product of these formats, every multiple of a grid that a block forms and every sum of
// them is a number of FP64: products have at most 22 bits, sums fewer than 2^40 units of a grid.
// A number is cut to a grid by multiplying it with the grid's reciprocal, which is a power of two,
// and rounding to an integer.

#include <cstddef>
#include <cstdint>

#include "emulator/engine/kernels/grid/grid_tile.hpp"
#include "formats/support/vectors/vector.hpp"

namespace guardbit::emulator::grids {

using formats::vectors::ArrayOf;
using formats::vectors::as;
using formats::vectors::fill;
using formats::vectors::load;

template <class Isa, Arithmetic arithmetic>
struct Blocks {
  using Doubles = typename Isa::Doubles;
  using Longs = typename Isa::Longs;
  static constexpr int terms = arithmetic.terms;
  static constexpr std::uint64_t sign_bit = std::uint64_t{1} << 63;

  /// 2^exponent of a number; 0 of a zero.
  [[gnu::always_inline]] static Doubles weight_of(Doubles x) {
    return as<Doubles>(as<Longs>(x) & (std::uint64_t{0x7ff} << 52));
  }
  /// Of a power of two.
  [[gnu::always_inline]] static Doubles reciprocal(Doubles weight) {
    return as<Doubles>((std::uint64_t{0x7fe} << 52) - as<Longs>(weight));
  }
  [[gnu::always_inline]] static Doubles magnitude(Doubles x) {
    return as<Doubles>(as<Longs>(x) & ~sign_bit);
  }
  [[gnu::always_inline]] static Doubles cut(Doubles x) {
    if constexpr (arithmetic.floors) return Isa::to_integer_below(x);
    return Isa::to_integer_toward_zero(x);
  }
  [[gnu::always_inline]] static Doubles floor_to(Doubles x, Doubles grid) {
    return Isa::to_integer_below(x * reciprocal(grid)) * grid;
  }
  [[gnu::always_inline]] static Doubles as_fp32(Doubles x) { return Isa::doubles(Isa::floats(x)); }
  /// Zero, of the number's sign, where a rounded number is below the normal range.
  [[gnu::always_inline]] static Doubles flushed(Doubles x) {
    const auto is_small = magnitude(x) < Isa::all(0x1p-126);
    return is_small ? as<Doubles>(as<Longs>(x) & sign_bit) : x;
  }

  /// A sum as a number of the result's format.
  [[gnu::always_inline]] static Doubles rounded(Doubles sum) {
    if constexpr (arithmetic.result == Result::fp16) {
      const Doubles unit = Isa::larger(weight_of(sum) * Isa::all(0x1p-10), Isa::all(0x1p-24));
      return Isa::to_nearest_integer(sum * reciprocal(unit)) * unit + Isa::all(0.0);
    } else {
      // What rounds to 24 bits below 2^-126 without a bound on the exponent is flushed.
      if constexpr (arithmetic.flushes)
        sum = magnitude(sum) < Isa::all(0x1p-126 - 0x1p-151) ? Doubles{} : sum;
      auto single = Isa::floats(sum);
      if constexpr (arithmetic.result != Result::fp32_signed_zero) single = single + 0.0F;
      if constexpr (arithmetic.result == Result::bf16) {
        using Words = typename formats::vectors::VectorOf<std::uint32_t, sizeof single>::Type;
        single = as<decltype(single)>(as<Words>(single) & 0xffff0000U);
      }
      return Isa::doubles(single);
    }
  }

  struct Products {
    ArrayOf<Doubles, terms> numbers, weights;
  };

  /// The sum of the products begin, begin + step, ... in units of the weight's grid.
  template <int begin, int end, int step>
  [[gnu::always_inline]] static Doubles units_of_set(const Products& x, Doubles grid) {
    const Doubles into_units = reciprocal(grid);
    Doubles sum = cut(x.numbers[begin] * into_units);
#pragma GCC unroll 16
    for (int i = begin + step; i < end; i += step) sum += cut(x.numbers[i] * into_units);
    return sum;
  }

  [[gnu::always_inline]] static Doubles two_stages(const Rule& rule, const Products& x,
                                                   Doubles largest, Doubles c) {
    const Doubles c_weight = Isa::larger(weight_of(c), Isa::all(rule.least_weight)) * rule.kept;
    const Doubles all = Isa::larger(largest, c_weight), grid = all * rule.finer;
    Doubles sum{};
    if constexpr (arithmetic.interleave == Interleave::none) {
      sum = floor_to(units_of_set<0, terms, 1>(x, largest) * largest, grid);
    } else if constexpr (arithmetic.interleave == Interleave::pairs) {
      const Doubles joined = Isa::larger(grid, largest), into_joined = reciprocal(joined);
#pragma GCC unroll 8
      for (int i = 0; i < terms; i += 2) {
        const Doubles own = Isa::larger(x.weights[i], x.weights[i + 1]);
        const Doubles into_units = reciprocal(own);
        const Doubles units = cut(x.numbers[i] * into_units) + cut(x.numbers[i + 1] * into_units);
        sum += Isa::to_integer_below(units * (own * into_joined));
      }
      sum = sum * joined;
    } else {
      const Doubles into_joined = reciprocal(largest);
      Doubles even = x.weights[0], odd = x.weights[1];
#pragma GCC unroll 8
      for (int i = 2; i < terms; i += 2) {
        even = Isa::larger(even, x.weights[i]);
        odd = Isa::larger(odd, x.weights[i + 1]);
      }
      sum = Isa::to_integer_below(units_of_set<0, terms, 2>(x, even) * (even * into_joined)) +
            Isa::to_integer_below(units_of_set<1, terms, 2>(x, odd) * (odd * into_joined));
      sum = floor_to(sum * largest, grid);
    }
    const Doubles addend = c_weight < all * rule.cutoff ? Doubles{} : floor_to(c, all);
    Doubles total = sum + addend + Isa::all(0.0);
    if (rule.total_kept != 0) total = floor_to(total, weight_of(total) * rule.total_kept);
    return rounded(total);
  }

  /// What a product adds, in units of the grid: one more where its sign is not the addend's.
  [[gnu::always_inline]] static Doubles inverted_units(Doubles product, Doubles into_units,
                                                       Longs addend_sign) {
    const Longs sign = as<Longs>(product) & sign_bit;
    const Doubles one = as<Doubles>(as<Longs>(Isa::all(1.0)) | sign);
    const Doubles more = (sign ^ addend_sign) != 0 ? one : Doubles{};
    return Isa::to_integer_toward_zero(product * into_units) + more;
  }

  [[gnu::always_inline]] static Doubles two_grids(const Rule& rule, const Products& x,
                                                  Doubles largest, Doubles c) {
    const Doubles c_weight = Isa::larger(weight_of(c), Isa::all(rule.least_weight));
    const Doubles grid = Isa::larger(largest, c_weight * rule.addend_kept);
    const Doubles into_units = reciprocal(grid);
    const Longs sign = as<Longs>(c) & sign_bit;
    Doubles sum = Isa::to_integer_toward_zero(c * into_units);
#pragma GCC unroll 8
    for (int i = 0; i < terms; ++i) sum += inverted_units(x.numbers[i], into_units, sign);
    return rounded(sum * grid + Isa::all(0.0));
  }

  /// Every product and sum rounded to FP32 and flushed, in a tree, the addend last.
  [[gnu::always_inline]] static Doubles pairwise(const Products& x, Doubles c) {
    ArrayOf<Doubles, terms> sums;
#pragma GCC unroll 8
    for (int i = 0; i < terms; ++i) sums[i] = flushed(as_fp32(x.numbers[i]));
#pragma GCC unroll 4
    for (int count = terms; count > 1; count /= 2) {
#pragma GCC unroll 8
      for (int i = 0; i < count / 2; ++i) sums[i] = flushed(as_fp32(sums[2 * i] + sums[2 * i + 1]));
    }
    return flushed(as_fp32(c + sums[0]));
  }

  static bool tile(const Rule& rule, const double* a, const double* b, std::int64_t length,
                   double* sums) {
    constexpr int lanes = formats::vectors::lanes<Doubles>;
    Doubles largest_result{}, largest_weight{};
    for (int column = 0; column < tile_columns; column += lanes) {
      ArrayOf<Doubles, tile_rows> c;
#pragma GCC unroll 4
      for (int r = 0; r < tile_rows; ++r) c[r] = load<Doubles>(sums + r * tile_columns + column);
      const double *a_at = a, *b_at = b + column;
      for (std::int64_t k = 0; k < length; k += terms) {
        Products columns;
#pragma GCC unroll 16
        for (int i = 0; i < terms; ++i) {
          columns.numbers[i] = load<Doubles>(b_at + i * 2 * tile_columns);
          columns.weights[i] = load<Doubles>(b_at + i * 2 * tile_columns + tile_columns);
        }
#pragma GCC unroll 4
        for (int r = 0; r < tile_rows; ++r) {
          Products x;
          Doubles largest{};
#pragma GCC unroll 16
          for (int i = 0; i < terms; ++i) {
            x.numbers[i] = columns.numbers[i] * Isa::all(a_at[i * 2 * tile_rows + r]);
            if constexpr (arithmetic.summation != Summation::pairwise) {
              x.weights[i] = columns.weights[i] * Isa::all(a_at[i * 2 * tile_rows + tile_rows + r]);
              largest = i == 0 ? x.weights[i] : Isa::larger(largest, x.weights[i]);
            }
          }
          if constexpr (arithmetic.summation == Summation::two_stage) {
            largest_weight = Isa::larger(largest_weight, largest);
            c[r] = two_stages(rule, x, largest, c[r]);
          } else if constexpr (arithmetic.summation == Summation::two_grids) {
            c[r] = two_grids(rule, x, largest, c[r]);
          } else {
            c[r] = pairwise(x, c[r]);
          }
          largest_result = Isa::larger(largest_result, magnitude(c[r]));
        }
        a_at += std::int64_t{terms} * 2 * tile_rows;
        b_at += std::int64_t{terms} * 2 * tile_columns;
      }
#pragma GCC unroll 4
      for (int r = 0; r < tile_rows; ++r) {
        formats::vectors::store(sums + r * tile_columns + column, c[r]);
        // A sum that is not finite has remained so.
        largest_weight = c[r] == c[r] ? largest_weight : Isa::all(__builtin_inf());
      }
    }
    for (int lane = 0; lane < lanes; ++lane) {
      if (!(largest_result[lane] <= rule.largest_result) ||
          !(largest_weight[lane] <= rule.weight_limit))
        return false;
    }
    return true;
  }
};

template <class Isa>
Tile find_tile(const Arithmetic& wanted) {
  Tile found = nullptr;
  const auto try_one = [&]<Arithmetic arithmetic>() {
    if (wanted == arithmetic) found = Blocks<Isa, arithmetic>::tile;
  };
  const auto try_results =
      [&]<Summation summation, int terms, Interleave interleave, bool floors, bool flushes>() {
        try_one.template
        operator()<Arithmetic{summation, terms, interleave, floors, flushes, Result::fp32}>();
        try_one.template
        operator()<Arithmetic{summation, terms, interleave, floors, flushes, Result::bf16}>();
        try_one.template
        operator()<Arithmetic{summation, terms, interleave, floors, false, Result::fp16}>();
      };
  using enum Summation;
  using enum Interleave;
  // RDNA4, RDNA3, CDNA3 and CDNA2
  try_results.template operator()<two_stage, 4, pairs, true, false>();
  try_results.template operator()<two_stage, 2, none, true, false>();
  try_one.template operator()<Arithmetic{two_stage, 4, none, true, false, Result::fp32}>();
  try_results.template operator()<two_grids, 2, none, false, true>();
  try_one.template
  operator()<Arithmetic{two_stage, 8, none, false, false, Result::fp32_signed_zero}>();
  try_one.template
  operator()<Arithmetic{two_stage, 4, none, false, false, Result::fp32_signed_zero}>();
  try_one.template
  operator()<Arithmetic{two_stage, 16, even_odd, false, false, Result::fp32_signed_zero}>();
  try_one
      .template operator()<Arithmetic{pairwise, 4, none, false, true, Result::fp32_signed_zero}>();
  try_one
      .template operator()<Arithmetic{pairwise, 2, none, false, true, Result::fp32_signed_zero}>();
  return found;
}

}  // namespace guardbit::emulator::grids
