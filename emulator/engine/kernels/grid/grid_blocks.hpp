#pragma once

// Tiles of sums on grids in the vectors of an instruction set. Included where that is allowed.
//
// Every product of these formats, every multiple of a grid that a block forms and every sum of
// them is a number of FP64: products have at most 22 bits, sums fewer than 2^40 units of a grid.
//
// The thread rounds toward zero (but for pairwise sums). Added to an offset, 1.5 * 2^52 units of a
// grid, a number is floored to the grid, as the sum is positive and its last place is one unit; a
// product by the multiply-add that forms it. Where products are cut toward zero, B's numbers are a
// little too large, so that floors of negative products are one unit too low (fused_tile.hpp, claim
// 1), and the offset is as many units higher.

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "emulator/engine/kernels/grid/grid_tile.hpp"
#include "formats/support/vectors/vector.hpp"

// What is done to vectors are lambdas, all of them inlined: no call passes a vector.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpsabi"

namespace guardbit::emulator::grids {

using formats::vectors::ArrayOf;
using formats::vectors::as;
using formats::vectors::fill;
using formats::vectors::load;

/// Vectors for all places of a tile, row by row. Every operation is done on all of them before the
/// next, as the way from one block's sum to the next one's is long and the CPU looks ahead at
/// little more than one.
template <class Vector>
struct TileOf {
  static constexpr int in_row = tile_columns / formats::vectors::lanes<Vector>,
                       count = tile_rows * in_row;
  ArrayOf<Vector, count> of;

  template <class Operation, class... Operands>
  [[gnu::always_inline]] static TileOf each(const Operation& operation, const Operands&... x) {
    TileOf y;
#pragma GCC unroll 16
    for (int i = 0; i < count; ++i) y.of[i] = operation(x.of[i]...);
    return y;
  }
  /// Calls operation(row, vector of the row).
  template <class Operation>
  [[gnu::always_inline]] static TileOf made(const Operation& operation) {
    TileOf y;
#pragma GCC unroll 16
    for (int i = 0; i < count; ++i) y.of[i] = operation(i / in_row, i % in_row);
    return y;
  }
  [[gnu::always_inline]] friend TileOf operator+(const TileOf& x, const TileOf& y) {
    return each([](const Vector& p, const Vector& q) { return p + q; }, x, y);
  }
  [[gnu::always_inline]] friend TileOf operator-(const TileOf& x, const TileOf& y) {
    return each([](const Vector& p, const Vector& q) { return p - q; }, x, y);
  }
  [[gnu::always_inline]] friend TileOf operator*(const TileOf& x, const TileOf& y) {
    return each([](const Vector& p, const Vector& q) { return p * q; }, x, y);
  }
  [[gnu::always_inline]] friend TileOf operator*(const TileOf& x, double y) {
    return each([y](const Vector& p) { return p * y; }, x);
  }
};

template <class Isa, Arithmetic arithmetic>
struct Blocks {
  using Doubles = typename Isa::Doubles;
  using Longs = typename Isa::Longs;
  using Shorts = typename Isa::Shorts;
  using SignedShorts = typename Isa::template Of<std::int16_t>;
  using Numbers = TileOf<Doubles>;
  using Integers = TileOf<Longs>;
  static constexpr int terms = arithmetic.terms, lanes = formats::vectors::lanes<Doubles>;
  static constexpr std::uint64_t sign_bit = std::uint64_t{1} << 63;

  /// 2^exponent of a number; 0 of a zero.
  [[gnu::always_inline]] static Numbers weight_of(const Numbers& x) {
    return Numbers::each(
        [](Doubles v) { return as<Doubles>(as<Longs>(v) & (std::uint64_t{0x7ff} << 52)); }, x);
  }
  /// Of a power of two.
  [[gnu::always_inline]] static Numbers reciprocal(const Numbers& weight) {
    return Numbers::each(
        [](Doubles v) { return as<Doubles>((std::uint64_t{0x7fe} << 52) - as<Longs>(v)); }, weight);
  }
  [[gnu::always_inline]] static Doubles magnitude(Doubles x) {
    return as<Doubles>(as<Longs>(x) & ~sign_bit);
  }
  [[gnu::always_inline]] static Numbers larger(const Numbers& x, const Numbers& y) {
    return Numbers::each([](Doubles v, Doubles w) { return Isa::larger(v, w); }, x, y);
  }
  [[gnu::always_inline]] static Numbers larger(const Numbers& x, double y) {
    return Numbers::each([y](Doubles v) { return Isa::larger(v, Isa::all(y)); }, x);
  }
  /// What floors to a grid, which is so many times the weight.
  [[gnu::always_inline]] static Numbers offset_of(const Numbers& weight, double times = 1) {
    return weight * (times * 0x1.8p52);
  }
  [[gnu::always_inline]] static Numbers floor_by(const Numbers& offset, const Numbers& x) {
    return (offset + x) - offset;
  }
  /// With the sign bits that `sign` has inverted.
  [[gnu::always_inline]] static Doubles inverted(Doubles x, Longs sign) {
    return as<Doubles>(as<Longs>(x) ^ sign);
  }

  /// To nearest even, by an instruction that names its direction: so many bits of fraction, but
  /// none below the least unit.
  template <int fraction_bits>
  [[gnu::always_inline]] static Numbers rounded_to(const Numbers& x, double least_unit) {
    constexpr double last_place = 1 / static_cast<double>(std::uint64_t{1} << fraction_bits);
    const Numbers unit = larger(weight_of(x) * last_place, least_unit);
    const Numbers units = x * reciprocal(unit);
    return Numbers::each([](Doubles v) { return Isa::to_nearest_integer(v); }, units) * unit;
  }
  /// A sum as a number of the result's format.
  [[gnu::always_inline]] static Numbers rounded(Numbers sum) {
    const auto without_sign_of_zero = [](Doubles v) { return v + Isa::all(0.0); };
    if constexpr (arithmetic.result == Result::fp16) {
      return Numbers::each(without_sign_of_zero, rounded_to<10>(sum, 0x1p-24));
    } else {
      // What rounds to 24 bits below 2^-126 without a bound on the exponent is flushed.
      if constexpr (arithmetic.flushes)
        sum = Numbers::each(
            [](Doubles v) { return magnitude(v) < Isa::all(0x1p-126 - 0x1p-151) ? Doubles{} : v; },
            sum);
      sum = rounded_to<23>(sum, 0x1p-149);
      if constexpr (arithmetic.result != Result::fp32_signed_zero)
        sum = Numbers::each(without_sign_of_zero, sum);
      if constexpr (arithmetic.result == Result::bf16) sum = Numbers::each(upper_half, sum);
      return sum;
    }
  }
  /// Of a number's code in FP32, without the lower half; what is too large for FP32 stays so.
  [[gnu::always_inline]] static Doubles upper_half(Doubles x) {
    using Words = typename formats::vectors::VectorOf<std::uint32_t, sizeof(Doubles) / 2>::Type;
    const auto single = Isa::floats(x);  // exact
    const Doubles cut = Isa::doubles(as<decltype(Isa::floats(x))>(as<Words>(single) & 0xffff0000U));
    return magnitude(x) < Isa::all(0x1p128) ? cut : x;
  }

  /// A block's elements of a tile's rows and of some columns, in their panels.
  struct Block {
    const double *a, *b;

    /// The i-th number of each column, and of each row.
    [[gnu::always_inline]] Numbers of_columns(int i) const {
      return Numbers::made(
          [&](int, int v) { return load<Doubles>(b + i * tile_columns + v * lanes); });
    }
    [[gnu::always_inline]] Numbers of_rows(int i) const {
      return Numbers::made([&](int r, int) { return Isa::all(a[i * tile_rows + r]); });
    }
    /// The i-th product added to a sum, which stands on an offset.
    [[gnu::always_inline]] Numbers add(int i, const Numbers& sum) const {
      return Numbers::each([](Doubles x, Doubles y, Doubles z) { return Isa::fma_down(x, y, z); },
                           of_rows(i), of_columns(i), sum);
    }

    /// The n-th of the words that follow a block's numbers.
    [[gnu::always_inline]] Integers words_of_columns(int n) const {
      return Integers::made(
          [&](int, int v) { return load<Longs>(b + (terms + n) * tile_columns + v * lanes); });
    }
    [[gnu::always_inline]] Integers words_of_rows(int n) const {
      return Integers::made([&](int r, int) {
        return formats::vectors::broadcast<Longs, std::uint64_t>(a + (terms + n) * tile_rows + r);
      });
    }
    /// Exponents of four products.
    [[gnu::always_inline]] Integers exponents(int n) const {
      return Integers::each(
          [](Longs x, Longs y) { return as<Longs>(as<Shorts>(x) + as<Shorts>(y)); },
          words_of_rows(n), words_of_columns(n));
    }
    /// The largest of those that `count` words from `first` on hold, as weights.
    template <int first, int count>
    [[gnu::always_inline]] Numbers largest_weight() const {
      Integers largest = exponents(first);
#pragma GCC unroll 4
      for (int n = first + 1; n < first + count; ++n)
        largest = larger_exponents(largest, exponents(n));
      if constexpr (terms > 2) largest = larger_exponents(largest, shifted(largest, 32));
      return weights(larger_exponents(largest, shifted(largest, 16)));
    }
    /// In each byte how many products are negative (exponent_words).
    [[gnu::always_inline]] Integers negatives() const {
      using Bytes = typename Isa::Bytes;
      constexpr int n = exponent_words(arithmetic);
      return Integers::each(
          [](Longs row_negative, Longs row_positive, Longs negative, Longs positive) {
            const auto found = as<Bytes>((row_negative & positive) | (row_positive & negative));
            return as<Longs>(terms <= 4 ? Isa::bit_counts_of_nibbles(found)
                                        : Isa::bit_counts(found));
          },
          words_of_rows(n), words_of_rows(n + 1), words_of_columns(n), words_of_columns(n + 1));
    }
  };
  [[gnu::always_inline]] static Integers shifted(const Integers& x, int bits) {
    return Integers::each([bits](Longs v) { return v >> bits; }, x);
  }
  [[gnu::always_inline]] static Integers larger_exponents(const Integers& x, const Integers& y) {
    return Integers::each(
        [](Longs v, Longs w) {
          const auto p = as<SignedShorts>(v), q = as<SignedShorts>(w);
          return as<Longs>(p > q ? p : q);
        },
        x, y);
  }
  /// Of the lowest exponents of words, which are FP64's fields.
  [[gnu::always_inline]] static Numbers weights(const Integers& exponents) {
    return Numbers::each([](Longs v) { return as<Doubles>(v << 52); }, exponents);
  }

  /// The sum of the products begin, begin + step, ... on a grid.
  template <int begin, int step>
  [[gnu::always_inline]] static Numbers sum_of_set(const Block& block, const Numbers& grid,
                                                   const Integers& negatives) {
    const Numbers offset = offset_of(grid);
    Numbers sum = offset;
    if constexpr (counts_negatives(arithmetic))
      sum = Numbers::each([](Doubles v, Longs count) { return as<Doubles>(as<Longs>(v) + count); },
                          offset, negatives);
#pragma GCC unroll 16
    for (int i = begin; i < terms; i += step) sum = block.add(i, sum);
    return sum - offset;
  }

  [[gnu::always_inline]] static Numbers two_stages(const Rule& rule, const Block& block,
                                                   const Numbers& c, Doubles& largest_weight) {
    Integers negatives;
    if constexpr (counts_negatives(arithmetic)) negatives = block.negatives();
    const Numbers c_weight = larger(weight_of(c), rule.least_weight) * rule.kept;
    Numbers largest, all, sum;
    if constexpr (arithmetic.interleave == Interleave::none) {
      largest = block.template largest_weight<0, exponent_words(arithmetic)>();
      all = larger(largest, c_weight);
      sum = floor_by(offset_of(all, rule.finer), sum_of_set<0, 1>(block, largest, negatives));
    } else if constexpr (arithmetic.interleave == Interleave::pairs) {
      static_assert(terms == 4);
      const Integers exponents = block.exponents(0),
                     of_pairs = larger_exponents(exponents, shifted(exponents, 16));
      const ArrayOf<Numbers, 2> own = {weights(of_pairs), weights(shifted(of_pairs, 32))};
      largest = larger(own[0], own[1]);
      all = larger(largest, c_weight);
      const Numbers offset = offset_of(larger(all * rule.finer, largest));
      sum = offset;
#pragma GCC unroll 2
      for (int i = 0; i < terms / 2; ++i) {
        const Numbers own_offset = offset_of(own[i]);
        sum = sum + (block.add(2 * i + 1, block.add(2 * i, own_offset)) - own_offset);
      }
      sum = sum - offset;
    } else {
      constexpr int words = exponent_words(arithmetic) / 2;
      const Numbers even = block.template largest_weight<0, words>(),
                    odd = block.template largest_weight<words, words>();
      largest = larger(even, odd);
      all = larger(largest, c_weight);
      const auto byte = [&](int place) {
        return Integers::each([place](Longs v) { return (v >> (8 * place)) & 0xff; }, negatives);
      };
      const Numbers offset = offset_of(largest);
      sum = offset + sum_of_set<0, 2>(block, even, byte(0));
      sum = sum + sum_of_set<1, 2>(block, odd, byte(1));
      sum = floor_by(offset_of(all, rule.finer), sum - offset);
    }
#pragma GCC unroll 16
    for (int i = 0; i < Numbers::count; ++i)
      largest_weight = Isa::larger(largest_weight, largest.of[i]);
    Numbers addend = floor_by(offset_of(all), c);
    if (rule.cutoff != 0) {
      const Numbers limit = all * rule.cutoff;
#pragma GCC unroll 16
      for (int i = 0; i < Numbers::count; ++i)
        addend.of[i] = c_weight.of[i] < limit.of[i] ? Doubles{} : addend.of[i];
    }
    Numbers total = sum + addend;
    if (rule.total_kept != 0) total = floor_by(offset_of(weight_of(total), rule.total_kept), total);
    return rounded(total);
  }

  /// Terms whose sign is not the addend's are cut toward zero and then one unit further: floored,
  /// of signs such that the addend is positive, as zeros are tiny numbers.
  [[gnu::always_inline]] static Numbers two_grids(const Rule& rule, const Block& block,
                                                  const Numbers& c) {
    const Numbers c_weight = larger(weight_of(c), rule.least_weight) * rule.addend_kept;
    const Numbers offset =
        offset_of(larger(block.template largest_weight<0, exponent_words(arithmetic)>(), c_weight));
    Numbers sum = offset + Numbers::each(magnitude, c);
#pragma GCC unroll 8
    for (int i = 0; i < terms; ++i)
      sum = Numbers::each(
          [](Doubles x, Doubles y, Doubles addend, Doubles z) {
            return Isa::fma_down(x, inverted(y, as<Longs>(addend) & sign_bit), z);
          },
          block.of_rows(i), block.of_columns(i), c, sum);
    return rounded(Numbers::each(
        [](Doubles v, Doubles addend) {
          return inverted(v, as<Longs>(addend) & sign_bit) + Isa::all(0.0);
        },
        sum - offset, c));
  }

  /// Rounded to FP32; a zero of the number's sign where that is below the normal range.
  [[gnu::always_inline]] static Numbers rounded_and_flushed(const Numbers& x) {
    return Numbers::each(
        [](Doubles v) {
          const Doubles single = Isa::doubles(Isa::floats(v));
          const auto is_small = magnitude(single) < Isa::all(0x1p-126);
          return is_small ? as<Doubles>(as<Longs>(single) & sign_bit) : single;
        },
        x);
  }
  /// Every product and sum rounded to FP32 and flushed, in a tree, the addend last.
  [[gnu::always_inline]] static Numbers pairwise(const Block& block, const Numbers& c) {
    ArrayOf<Numbers, terms> sums;
#pragma GCC unroll 8
    for (int i = 0; i < terms; ++i)
      sums[i] = rounded_and_flushed(block.of_rows(i) * block.of_columns(i));
#pragma GCC unroll 4
    for (int count = terms; count > 1; count /= 2) {
#pragma GCC unroll 8
      for (int i = 0; i < count / 2; ++i)
        sums[i] = rounded_and_flushed(sums[2 * i] + sums[2 * i + 1]);
    }
    return rounded_and_flushed(c + sums[0]);
  }

  static bool tile(const Rule& rule, const double* a, const double* b, std::int64_t length,
                   double* sums) {
    Doubles largest_result{}, largest_weight{};
    Numbers c = Numbers::made(
        [&](int r, int v) { return load<Doubles>(sums + r * tile_columns + v * lanes); });
    Block block{a, b};
    for (std::int64_t k = 0; k < length; k += terms) {
      if constexpr (arithmetic.summation == Summation::two_stage) {
        c = two_stages(rule, block, c, largest_weight);
      } else if constexpr (arithmetic.summation == Summation::two_grids) {
        c = two_grids(rule, block, c);
      } else {
        c = pairwise(block, c);
      }
#pragma GCC unroll 16
      for (int i = 0; i < Numbers::count; ++i)
        largest_result = Isa::larger(largest_result, magnitude(c.of[i]));
      block.a += block_size(arithmetic, tile_rows);
      block.b += block_size(arithmetic, tile_columns);
    }
#pragma GCC unroll 16
    for (int i = 0; i < Numbers::count; ++i) {
      formats::vectors::store(sums + i * lanes, c.of[i]);
      // A sum that is not finite has remained so.
      largest_weight = c.of[i] == c.of[i] ? largest_weight : Isa::all(__builtin_inf());
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

#pragma GCC diagnostic pop
