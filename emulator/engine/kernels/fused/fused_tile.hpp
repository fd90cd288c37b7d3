#pragma once

// A tile of `Lanes::rows` rows and `Lanes::columns` columns of D over a chain of blocks: the
// method, and why it is exact.
//
// A fused block (dot.hpp) cuts every product and the addend c to multiples of u = 2^(E-F), toward
// zero, and adds them exactly; E is the largest exponent among them. Here an accumulator starts at
// X = 1.5 * 2^p with p such that X's last place is u (p = E-F+52 in FP64, E-F+23 in FP32). While
// partial sums stay within a quarter of the binade, fma(a, b, accumulator) rounded *down* is
// accumulator + u * floor(a*b/u) without error: one instruction multiplies, aligns, cuts and adds,
// and the order does not matter. Terms are below 2^(F+2) u, so L + 1 of them stay below 2^50 u
// (FP64) or 2^22 u (FP32; checked in fused_arithmetic.cpp).
//
// Floor is not truncation for negative products off the grid. B is stored as b' = b * (1 + eps),
// eps = 2^-30 in FP64 and 2^-20 in FP32, which puts every nonzero product just off the grid:
//
//   Claim 1. Let p = |a*b|/u > 0, a*b = s * 2^q with an integer s < 2^S, p < 2^(F+2). If eps < 2^-S
//   and eps <= 2^-(F+2), then floor(p(1+eps)) = floor(p) and p(1+eps) is no integer.
//   Proof. Let m be the finer of 2^q/u and 1: p and every integer are multiples of m. If m = 2^q/u,
//   p*eps = m*s*eps < m; if m = 1, p*eps < 1. So (p, p + p*eps] holds no multiple of m.
//
// S is 24 at most for FP64 (tf32: 22) and 8 for FP32. So floor is exact for positive products and
// one step of the grid too low for every nonzero negative one, and the accumulator starts at X plus
// their number, as an integer added to X's bits: a count of bits of (negative a and positive b) or
// (positive a and negative b). Zeros are in neither set; their products are zeros, which change
// nothing. c enters the same way: fma(c, 1 + eps, start), the start one higher if c is negative. S
// is 24 there, of a sum that is left as it is 28 (claim 3), in FP32's lanes 22, and their eps for c
// is 2^-23.
//
//   Claim 3. Where results keep F bits of fraction (E8M13), a block may leave its sum to the next
//   one as it is: cut to 2^(e-F), e its exponent, and then to that block's u, or to u alone, is the
//   same. Proof. Cutting keeps a number's exponent, so u = 2^(E-F) with E >= e is the same, and a
//   multiple of 2^(e-F). The last block's sum is cut. (Sums below 2^-126, where products are zero,
//   are multiples of the first addend's last place and stay what they are.) The same holds of FP32
//   and F = 23; of 4 products such a sum is below 18 * 2^23 u, which is 28 bits.
//
// Else the next block may cut a sum to FP32 as well as the one that ends: sign and exponent, by
// which X is chosen, are the same before.
//
// E by bytes. A factor's code is 64 + (exponent - lowest of its band), at most 127, and 0 for a
// zero: sums of two real codes are 128 or more, with a zero 127 or less. So a maximum of sums
// (bytes do not overflow: 254) is E's code if its top bit is set, and else every product is zero;
// the exponent is then taken as -127 (FP16 results: e0). Where c's exponent is the larger, it
// counts: |c| and 2^E are compared as floating-point numbers, and only the larger one's exponent
// field is kept.
//
//   Claim 2. Exponents below a normal FP32's need not be exact where D is FP32 and tiles are normal
//   (fused_arithmetic.hpp). Proof. If a product is nonzero, E >= -100 and u >= 2^-126, so c below
//   2^-126 is cut to zero whatever exponent it is given, and every result is a multiple of u, hence
//   normal or zero. If all products are zero, the result is c cut at 2^(E-F), and with F >= 23 all
//   of c's bits lie above that for E = max(-127, exponent of c) as for the unit's own -126 or e0;
//   in FP32's lanes, E8M13's subnormals keep bits down to 2^-139, which the final cut leaves of
//   them.
//
// FP16 results see subnormal and zero addends' exponents: these are raised to -14, and to e0.
//
// X is taken off a finished accumulator, whose exponent it has. Infinities and NaNs are left to
// IEEE arithmetic: their products, sums and cuts are what the unit makes of them as long as that X
// is finite. A special's code is any: E does not matter then. Results are made canonical when they
// are stored. FP32's lanes take a minimum with the largest finite number for it; FP64's need no
// instruction:
//
//   Claim 4. B is stored 2^160 times as large, and so are all sums. Then bit 9 of the exponent
//   field of every E and X is 0, that of an infinity or a NaN is 1, and a mask that leaves that bit
//   out takes finite numbers' exponents as they are and makes every other finite. Proof. Between
//   zeros' E and c's or any product's, -140 <= E <= 286, and X's exponent is E - F + 52, 26 to 39
//   more; biased by 1023 + 160, all of it lies in [1043, 1508], within [1024, 1536), where bit 9
//   is 0.
//
// Direction of rounding. The thread rounds toward zero while tiles run (TileRounding): accumulators
// are above zero, where that is down. Roundings to FP16 name their direction (Isa::fp16_rounded).
//
// General tiles: products below 2^-100 or above 2^60, or factors more than 63 binades apart (bf16,
// tf32, scaled blocks). Exponents then take 16 bits, E is at least e0, c's own exponent is at least
// -126, and results are rounded by conversion to FP32, which knows subnormals; 2^128 and more is
// infinite.

#include <cstddef>
#include <cstdint>

#include "emulator/engine/kernels/fused/fused_panels.hpp"
#include "formats/support/vectors/vector.hpp"

namespace guardbit::emulator::fused {

using formats::vectors::ArrayOf;

/// From here on an addend of FP32's lanes leaves no bit of any product, and is D by itself: the
/// products of the instructions they serve stay below 2^40, and F is at most 16.
inline constexpr float largest_fp32_addend = 0x1p60F;

/// What a tile reads and writes. A and B begin at its first block.
struct TileOperands {
  const std::byte *a_values, *a_codes, *a_exponents, *a_signs;
  const std::byte *b_values, *b_codes, *b_exponents, *b_signs;
  int blocks = 0;
  /// Codes (or exponents, of a general tile) of the tile that comes after this one, and its largest
  /// exponents in its first block, which this one finds while it ends.
  const std::byte *next_a_codes = nullptr, *next_b_codes = nullptr;
  std::byte* largest = nullptr;
  bool largest_is_known = false;
  /// All factors are finite, and their products' exponents at most `highest_integer_product`.
  bool plain = false;
  /// of A's band and B's k-th band together: the exponent whose products have the code 128
  std::array<int, 4> lowest{};
  /// of the tile, which it adds to
  std::byte* sums = nullptr;
};

/// Numbers of an instruction that a kernel takes at run time.
struct TileRule {
  int kept_fraction_bits = 0, zero_exponent = 0;
};

using TileFunction = void (*)(const TileRule&, const TileOperands&);

/// What fp64_integers.hpp takes: products of such exponents, and addends below this.
inline constexpr int highest_integer_product = 50;
inline constexpr float largest_integer_addend = 0x1p60F;

/// The rows of a tile in memory, bytes from row to row apart. C null: +0.
struct TileRows {
  const std::byte* c = nullptr;
  std::byte* d = nullptr;
  std::ptrdiff_t c_stride = 0, d_stride = 0;

  const std::byte* c_row(int r) const { return c == nullptr ? nullptr : c + r * c_stride; }
};

/// How the sums of a tile, row by row as the lanes hold them, begin as C and become D.
struct SumFunctions {
  void (*begin)(const TileRows&, std::byte* sums) = nullptr;
  void (*end)(const TileRows&, const std::byte* sums) = nullptr;
};

/// A tile and the steps that take it through its blocks.
///
/// Its halves (rows 0 to 3, rows 4 to 7) are some products apart: each ends a block and begins the
/// next (`turn`, a dozen instructions an output vector, on ports that mostly cannot multiply) while
/// the other's products are summed:
///
///   upper rows  products 0 .. lag    | lag .. K         | turn
///   lower rows  turn                 | 0 .. K - lag     | K - lag .. K
///
/// Every factor of B is then loaded twice. Where registers hold one half's accumulators alone
/// (Lanes::halves_apart), each half goes through all blocks before the other, its accumulators
/// never in memory, and the CPU overlaps what it can by itself.
///
/// Lanes: the instruction set's vectors, in fp32_lanes.hpp, fp64_pairs.hpp and fp64_integers.hpp.
/// General: exponents in 16 bits, results anywhere in FP32's range; of FP32's lanes, addends too
/// large for them.
template <class Lanes, int BlockK, Result Kind, Composition Blocks, bool General>
class Tile {
 public:
  Tile(const TileRule& rule, const TileOperands& operands)
      : constants_(rule), x_(operands), last_(operands.blocks - 1) {}

  [[gnu::always_inline]] void run() {
    if (x_.largest_is_known) {
      std::memcpy(&maximum_, x_.largest, sizeof maximum_);
    } else {
      maximum_.clear();
      for (int k = 0; k < BlockK; ++k) include(codes_at(k));
    }
    maximum_.finish(constants_, x_.lowest, exponents_);
    if constexpr (Lanes::halves_apart) {
      sum_half<0>();
      sum_half<half>();
      std::memcpy(x_.largest, &maximum_, sizeof maximum_);
    } else {
      Accumulators upper, lower;
      start_half<0>(upper);
      start_half<half>(lower);
      for (int block = 0; block <= last_; ++block) sum_lagging_block(block, upper, lower);
      std::memcpy(x_.largest, &maximum_, sizeof maximum_);
      turn_half<half, false>(last_, lower);
    }
  }
  /// False if a sum was, perhaps, too large for its lanes; the tile's are wrong then.
  bool fits() const {
    if constexpr (watches)
      return Lanes::template fits<BlockK>(constants_.kept_fraction_bits, most_);
    return true;
  }

 private:
  using Vector = typename Lanes::Vector;
  using Value = typename Lanes::Value;
  static constexpr int value_bytes = sizeof(Value);
  using Turned = typename Lanes::Turned;
  using Sum = typename Lanes::template Sum<Kind>;
  using Stored = typename Lanes::template Stored<Kind>;
  using Maximum = typename Lanes::template Maximum<General>;
  using Exponents = typename Maximum::Exponents;
  static constexpr int rows = Lanes::rows, vectors = Lanes::vectors, half = rows / 2;
  static constexpr int together = Lanes::together, turned = vectors / together;
  static constexpr int lag = Lanes::template lag<BlockK>;
  /// Of the lag, in each of which so many places are multiplied and some vectors turned.
  static constexpr int parts = std::min(lag, half*turned), steps = lag / parts;
  static constexpr int groups = (BlockK + Lanes::sign_group - 1) / Lanes::sign_group;
  static constexpr bool composed = Blocks != Composition::chain;
  /// Could a block's sum be too large for its lanes?
  static constexpr bool watches = Lanes::template may_overflow<BlockK>;
  /// Are addends cut where their block begins, not where the one before ends?
  static constexpr bool cuts_addends =
      Lanes::cuts_addends && Kind == Result::fp32 && Blocks == Composition::chain && !General;
  /// Are a half's sums rounded as normal numbers where all of them are?
  static constexpr bool rounds_normal =
      Lanes::rounds_normal && Kind == Result::fp16 && Blocks == Composition::chain;
  /// Does a block leave its sum to the next one as it is? (claim 3)
  static constexpr bool leaves_cut =
      Kind == Result::e8m13 || (Kind == Result::fp32_as_kept && !General) || cuts_addends;

  /// Of half the rows, row by row.
  struct Accumulators {
    ArrayOf<Turned, half * turned> of;

    [[gnu::always_inline]] Vector& at(int r, int v) {
      Turned& x = of[r * turned + v / together];
      if constexpr (together == 1) {
        return x;
      } else {
        return v % 2 == 0 ? x.first : x.second;
      }
    }
  };
  /// Where the codes of a product stand.
  struct Codes {
    const std::byte *a, *b;
    Codes operator+(int k) const { return {a + k * Maximum::a_step, b + k * Maximum::b_step}; }
  };
  Codes codes_at(int k) const {
    constexpr bool by_exponents = General && Lanes::any_exponents;
    return Codes{by_exponents ? x_.a_exponents : x_.a_codes,
                 by_exponents ? x_.b_exponents : x_.b_codes} +
           k;
  }
  [[gnu::always_inline]] void include(const Codes& codes) { maximum_.include(codes.a, codes.b); }

  /// Codes of the block after this one, whose largest exponents are found while this one is summed.
  Codes coming(int block) const {
    return block == last_ ? Codes{x_.next_a_codes, x_.next_b_codes}
                          : codes_at((block + 1) * BlockK);
  }

  [[gnu::always_inline]] void sum_lagging_block(int block, Accumulators& upper,
                                                Accumulators& lower) {
    const std::byte* const a = x_.a_values + block * (BlockK * Lanes::a_step);
    const std::byte* const b = x_.b_values + block * (BlockK * Lanes::b_step);
    const std::byte* b_again = b;  // loaded again, which is cheaper than kept
    asm("" : "+r"(b_again));
    const Codes next = coming(block);
    maximum_.clear();
    if (block == 0) {
#pragma GCC unroll 8
      for (int k = 0; k < lag; ++k) {
        multiply<0>(a, b, k, upper);
        include(next + k);
      }
    } else {
#pragma GCC unroll 8
      for (int part = 0; part < parts; ++part) {
        multiply_part<0>(a, b, part * steps, upper);
        turn_part<half, true>(part, block - 1, lower);
#pragma GCC unroll 4
        for (int k = part * steps; k < (part + 1) * steps; ++k) include(next + k);
      }
    }
#pragma GCC unroll 4
    for (int k = lag; k < BlockK; ++k) {
      multiply<0>(a, b, k, upper);
      multiply<half>(a, b_again, k - lag, lower);
      include(next + k);
    }
    if (block < last_) {
      maximum_.finish(constants_, x_.lowest, exponents_);
#pragma GCC unroll 8
      for (int part = 0; part < parts; ++part) {
        multiply_part<half>(a, b_again, part * steps + BlockK - lag, lower);
        turn_part<0, true>(part, block, upper);
      }
    } else {
#pragma GCC unroll 8
      for (int part = 0; part < parts; ++part) {
        multiply_part<half>(a, b_again, part * steps + BlockK - lag, lower);
        turn_part<0, false>(part, block, upper);
      }
    }
  }

  /// One half through all blocks.
  template <int Row>
  [[gnu::always_inline]] void sum_half() {
    constexpr int group = Row / rows_together;
    Accumulators x;
    start_half<Row>(x);
    for (int block = 0; block <= last_; ++block) {
      const std::byte* const a = x_.a_values + block * (BlockK * Lanes::a_step);
      const std::byte* const b = x_.b_values + block * (BlockK * Lanes::b_step);
      const Codes next = coming(block);
      Maximum maximum;
      maximum.template clear<group, group + 1>();
#pragma GCC unroll 4
      for (int k = 0; k < BlockK; ++k) {
        multiply<Row>(a, b, k, x);
        const Codes at = next + k;
        maximum.template include<group, group + 1>(at.a, at.b);
      }
      if (block < last_) {
        maximum.template finish<group, group + 1>(constants_, x_.lowest, exponents_);
        turn_half<Row, true>(block, x);
      } else {
        maximum_.template take<group>(maximum);
        turn_half<Row, false>(block, x);
      }
    }
  }

  std::byte* sum_at(int r, int v) const {
    return x_.sums + static_cast<std::size_t>(r * turned + v) * sizeof(Stored);
  }

  /// The products at place `k` of a block for four rows from Row on.
  template <int Row>
  [[gnu::always_inline]] static void multiply(const std::byte* a, const std::byte* b, int k,
                                              Accumulators& accumulators) {
    Vector factors[Lanes::vectors];
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) factors[v] = Lanes::load(b + k * Lanes::b_step, v);
#pragma GCC unroll 4
    for (int r = 0; r < half; ++r) {
      const auto factor =
          Lanes::Set::template factor<Value>(a + k * Lanes::a_step + (Row + r) * value_bytes);
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) {
        Vector& accumulator = accumulators.at(r, v);
        accumulator = Lanes::Set::fma_down(factor, factors[v], accumulator);
      }
    }
  }

  /// Those of a part, which begins at place `k`.
  template <int Row>
  [[gnu::always_inline]] static void multiply_part(const std::byte* a, const std::byte* b, int k,
                                                   Accumulators& accumulators) {
#pragma GCC unroll 4
    for (int step = 0; step < steps; ++step) multiply<Row>(a, b, k + step, accumulators);
  }

  /// From the accumulators of a block to those of the next one, of four rows from Row on: those
  /// [first, last) that are turned at once. `Starts`: there is a next one.
  template <int Row, bool Starts>
  [[gnu::always_inline]] void turn(int first, int last, int block, Accumulators& accumulators) {
    if constexpr (Starts && Lanes::halves_apart) {
      // All end before any begins: the way is long, and the CPU looks ahead at little more than
      // one.
      ArrayOf<Sum, half * turned> sums;
      bool ended = false;
      if constexpr (rounds_normal) ended = end_as_normal(accumulators, sums);
      if (!ended) {
#pragma GCC unroll 8
        for (int i = first; i < last; ++i)
          sums[i] = end_one<Row>(i % half, i / half, block, accumulators);
      }
#pragma GCC unroll 8
      for (int i = first; i < last; ++i)
        begin_one<Row>(i % half, i / half, block, sums[i], accumulators);
    } else {
#pragma GCC unroll 8
      for (int i = first; i < last; ++i) {
        const int row = i % half, v = i / half;
        if constexpr (Starts) {
          begin_one<Row>(row, v, block, end_one<Row>(row, v, block, accumulators), accumulators);
        } else {
          const Sum result = finish<false>(block, Row + row, v, accumulators.of[row * turned + v]);
          Lanes::template store_sum<Kind>(constants_, sum_at(Row + row, v),
                                          composed ? total_[Row + row][v] : result);
        }
      }
    }
  }
  /// False if that is not right of some.
  [[gnu::always_inline]] bool end_as_normal(const Accumulators& accumulators,
                                            ArrayOf<Sum, half * turned>& sums) const {
#pragma GCC unroll 8
    for (int i = 0; i < half * turned; ++i) {
      const Turned& accumulator = accumulators.of[i % half * turned + i / half];
      sums[i] = Lanes::rounded_to_normal_fp16(Lanes::exact(constants_, accumulator));
    }
    return Lanes::template are_right_as_normal<half * turned>(sums);
  }
  template <int Row>
  [[gnu::always_inline]] Sum end_one(int row, int v, int block, const Accumulators& accumulators) {
    return finish<leaves_cut>(block, Row + row, v, accumulators.of[row * turned + v]);
  }
  template <int Row>
  [[gnu::always_inline]] void begin_one(int row, int v, int block, const Sum& sum,
                                        Accumulators& accumulators) {
    accumulators.of[row * turned + v] = start<Row>(block + 1, Row + row, v, sum);
  }
  template <int Row, bool Starts>
  [[gnu::always_inline]] void turn_half(int block, Accumulators& accumulators) {
    turn<Row, Starts>(0, half * turned, block, accumulators);
  }
  template <int Row, bool Starts>
  [[gnu::always_inline]] void turn_part(int part, int block, Accumulators& accumulators) {
    constexpr int count = half * turned / parts;
    turn<Row, Starts>(part * count, (part + 1) * count, block, accumulators);
  }
  template <int Row>
  [[gnu::always_inline]] void start_half(Accumulators& accumulators) {
#pragma GCC unroll 8
    for (int i = 0; i < half * turned; ++i) {
      const int r = Row + i % half, v = i / half;
      const Sum sum = Lanes::template load_sum<Kind>(constants_, sum_at(r, v));
      if constexpr (composed) total_[r][v] = sum;
      accumulators.of[i % half * turned + v] = start<Row>(0, r, v, sum);
    }
  }

  /// The accumulator before a block's first product. Rows come one after the other, so that all of
  /// a half share their count of negative products.
  template <int Row>
  [[gnu::always_inline]] Turned start(int block, int r, int v, const Sum& sum) {
    const bool from_zero = Blocks == Composition::separate_halves || (composed && block % 2 == 0);
    const Sum addend = composed && from_zero ? Lanes::template zero<Kind>() : sum;
    if (r == Row)
      negatives_ = Lanes::template negative_products<groups, BlockK>(
          x_.a_signs + block * (groups * Lanes::a_sign_step),
          x_.b_signs + block * (groups * Lanes::b_sign_step), Row, v);
    if constexpr (cuts_addends)
      return Lanes::start_cut(constants_, exponents_.of(constants_, v, r),
                              Lanes::template low_bits<groups>(constants_, negatives_, r), addend);
    else
      return Lanes::start(constants_, exponents_.of(constants_, v, r),
                          Lanes::template low_bits<groups>(constants_, negatives_, r), addend);
  }

  /// The block's result. Exact: as it is before it is rounded.
  template <bool Exact>
  [[gnu::always_inline]] Sum finish(int block, int r, int v, const Turned& accumulator) {
    const auto exact = Lanes::exact(constants_, accumulator);
    if constexpr (Exact) return exact;
    if constexpr (watches) most_ = Lanes::larger_count(most_, exact);
    const Sum result = Lanes::template round<Kind, General>(constants_, exact);
    if constexpr (composed) {
      if (block % 2 == 1) {
        const Sum blocks = Blocks == Composition::chained_halves
                               ? result
                               : Lanes::template add<Kind>(constants_, sum_[r][v], result);
        total_[r][v] = Lanes::template add<Kind>(constants_, total_[r][v], blocks);
      }
      sum_[r][v] = result;
    }
    return result;
  }

  const typename Lanes::template Constants<Kind, General> constants_;
  const TileOperands& x_;
  const int last_;
  ArrayOf<ArrayOf<Sum, turned>, rows> sum_;    // of composed instructions: the results of blocks
  ArrayOf<ArrayOf<Sum, turned>, rows> total_;  // of composed instructions: C
  typename Lanes::Most most_{};
  typename Lanes::Counts negatives_;
  Maximum maximum_;      // of the coming block
  Exponents exponents_;  // of this one
};

/// Calls visit(row, v, place): the v-th sum of a row stands at that place of the tile's.
template <class Lanes, class Stored, class Visit>
[[gnu::always_inline]] inline void each_sum(const Visit& visit) {
  constexpr int turned = Lanes::vectors / Lanes::together;
#pragma GCC unroll 8
  for (int r = 0; r < Lanes::rows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < turned; ++v)
      visit(r, v, static_cast<std::size_t>(r * turned + v) * sizeof(Stored));
  }
}

template <class Lanes, Result Kind, bool LargeAddends>
void begin_sums(const TileRows& x, std::byte* sums) {
  each_sum<Lanes, typename Lanes::template Stored<Kind>>([&](int r, int v, std::size_t at) {
    store(sums + at, Lanes::template load_addend<Kind, LargeAddends>(x.c_row(r), v));
  });
}

template <class Lanes, Result Kind, bool LargeAddends>
void end_sums(const TileRows& x, const std::byte* sums) {
  using Stored = typename Lanes::template Stored<Kind>;
  each_sum<Lanes, Stored>([&](int r, int v, std::size_t at) {
    Lanes::template store_result<Kind, LargeAddends>(x.d + r * x.d_stride, v,
                                                     load<Stored>(sums + at), x.c_row(r));
  });
}

template <class Lanes, int BlockK, Result Kind, Composition Blocks, bool General>
void sum_tile(const TileRule& rule, const TileOperands& x) {
  Tile<Lanes, BlockK, Kind, Blocks, General>(rule, x).run();
}

}  // namespace guardbit::emulator::fused
