#pragma once

// The operations of fused_tile.hpp in FP64's lanes with FP32 results, in half the instructions of
// fp64_pairs.hpp between two blocks, for tiles of finite numbers. Included where the instruction
// set is allowed.
//
// An accumulator X + S u, S an integer, has S modulo 2^32 as its low word: X has zeros there. The
// words of two vectors are S of 16 results (in AVX-512), and one conversion toward zero to FP32
// cuts all of them to their 24 bits. FP32's lanes also find the next block's E, and the next
// addend's S, which one conversion toward zero cuts to the grid; it needs no count for its sign.
// The next accumulator is S, with the count of negative products, as a low word under X's high
// word. A negative S there stands for 2^32 more, which S modulo 2^32 does not see.
//
//   Claim 7. |S| stays below 2^31 if (4 L + 2) 2^F <= 2^31: every product is below 4 * 2^E, and the
//   addend below 2 * 2^E. Of 16 products and F = 25 the largest sum is below 66 * 2^25; modulo 2^32
//   a sum of 2^31 or more then looks like one of more than 62 * 2^25. Such sums are watched for,
//   and their tile is summed again by fp64_pairs.hpp.
//
// Sums are 2^s times what they stand for, s = 84 - F: then an exponent's field in FP32 is the low 8
// bits of X's in FP64, above which stands 100. No sum is subnormal, and products up to 2^50 and
// addends up to 2^60 stay in FP32's range.

#include "emulator/engine/kernels/fused/fp64_pairs.hpp"

namespace guardbit::emulator::fused {

template <class Isa>
struct Fp64Integers : Fp64Pairs<Isa> {
  using Base = Fp64Pairs<Isa>;
  using Vector = typename Isa::Doubles;
  using Words = typename Isa::Words;
  using Floats = typename Isa::Floats;
  using Bytes = typename Isa::Bytes;
  /// Two accumulators, and what their last place stands for.
  struct Turned {
    Vector first, second;
    Floats unit;
  };
  template <Result>
  using Sum = Floats;
  static constexpr int fraction_bits = 23, bias = 127;
  template <int BlockK>
  static constexpr int lag = std::min(8, BlockK / 2);

  template <Result, bool>
  struct Constants {
    Words exponent_field, half, inverse, unit_less;
    Floats scale_up, scale_down;
    int kept_fraction_bits, least_code;
    explicit Constants(const TileRule& rule)
        : exponent_field(code(0xFF)),
          half(fill<Words>(1U << (fraction_bits - 1))),
          inverse(code(2 * bias + rule.kept_fraction_bits) + half),
          unit_less(code(rule.kept_fraction_bits) + half),
          scale_up(as<Floats>(code(bias + scale_of(rule)))),
          scale_down(as<Floats>(code(bias - scale_of(rule)))),
          kept_fraction_bits(rule.kept_fraction_bits),
          least_code(scale_of(rule)) {}
  };
  /// log2 of what sums are multiplied by
  static int scale_of(const TileRule& rule) {
    return fp64_scale_exponent - 76 - rule.kept_fraction_bits;
  }
  static Words code(int x) { return fill<Words>(static_cast<std::uint32_t>(x) << fraction_bits); }

  /// Exponents of products with sums' scale, 4 rows in 32 bits.
  struct ExponentBytes {
    ArrayOf<ArrayOf<Bytes, Base::row_groups>, Base::pairs> bytes;

    /// As FP32's. The sign and the fraction are other rows' bits; neither matters to `start`.
    template <class C>
    [[gnu::always_inline]] Floats of(const C&, int pair, int r) const {
      const auto of_rows = as<Words>(bytes[pair][r / 4]);
      return as<Floats>(r % 4 == 3 ? of_rows >> 1 : of_rows << (fraction_bits - 8 * (r % 4)));
    }
  };
  template <bool>
  struct Maximum : ByteMaximum<Isa, Base::rows, Base::columns> {
    using Exponents = ExponentBytes;
    template <int first = 0, int last = Base::row_groups, class C>
    [[gnu::always_inline]] void finish(const C& x, const std::array<int, 4>& lowest,
                                       Exponents& result) const {
#pragma GCC unroll 2
      for (int p = 0; p < Base::pairs; ++p) {
#pragma GCC unroll 2
        for (int i = first; i < last; ++i)
          result.bytes[p][i] = rebased(this->codes[p][i], lowest[0] + x.least_code, x.least_code);
      }
    }
  };

  template <Result>
  [[gnu::always_inline]] static Floats zero() {
    return Floats{};
  }
  /// Numbers of negative products of 4 rows, and the row.
  struct Row {
    Bytes counts;
    int r;
  };
  template <int Groups, class C>
  [[gnu::always_inline]] static Row low_bits(const C&, const Bytes& counts, int r) {
    return {counts, r % 4};
  }

  template <class C>
  [[gnu::always_inline]] static Turned start(const C& x, const Floats& products,
                                             const Row& negatives, const Floats& addend) {
    const Floats largest = Isa::larger_magnitude(products, addend);
    const Words exponent = Isa::and_or(as<Words>(largest), x.exponent_field, x.half);
    const Words high = Isa::template shifted_below<3>(exponent, 0b010);
    const Floats inverse = as<Floats>(x.inverse - exponent);
    const Words low =
        Isa::plus_byte(Isa::to_signed(addend * inverse), negatives.counts, negatives.r);
    return {of_words<Vector, 0>(low, high), of_words<Vector, 1>(low, high),
            as<Floats>(exponent - x.unit_less)};
  }

  /// Sums cut to FP32, in units.
  struct Counted {
    Floats count, unit;
  };
  template <class C>
  [[gnu::always_inline]] static Counted exact(const C&, const Turned& accumulator) {
    const auto low = low_words<Words>(accumulator.first, accumulator.second);
    return {Isa::of_signed_toward_zero(low), accumulator.unit};
  }
  template <Result, bool, class C>
  [[gnu::always_inline]] static Floats round(const C&, const Counted& exact) {
    return exact.count * exact.unit;
  }

  /// Claim 7.
  static constexpr int longest_block = 16;
  template <int BlockK>
  static constexpr bool may_overflow = BlockK == longest_block;
  using Most = Floats;
  [[gnu::always_inline]] static Floats larger_count(const Floats& most, const Counted& exact) {
    return Isa::larger_magnitude(most, exact.count);
  }
  /// 2^31 may be reached or not.
  template <int BlockK>
  static constexpr double largest_sum(int kept_fraction_bits) {
    return (4.0 * BlockK + 2) * static_cast<double>(std::int64_t{1} << kept_fraction_bits);
  }
  template <int BlockK>
  static bool takes(const TileRule& rule) {
    return largest_sum<BlockK>(rule.kept_fraction_bits) <=
           (may_overflow<BlockK> ? 0x1.1p31 : 0x1p31);
  }
  template <int BlockK>
  static bool fits(int kept_fraction_bits, const Floats& most) {
    const double largest = largest_sum<BlockK>(kept_fraction_bits);
    if (largest <= 0x1p31) return true;
    return all_below(most, static_cast<float>(0x1p32 - largest));
  }
  static bool all_below(const Floats& x, float limit) {
    for (int lane = 0; lane < formats::vectors::lanes<Floats>; ++lane)
      if (!(x[lane] < limit)) return false;
    return true;
  }
  /// Are all addends of a tile finite and moderate? Magnitudes' codes are in their order.
  static bool takes_sums(const std::byte* sums) {
    Words most{};
    for (int i = 0; i < Base::rows * Base::pairs; ++i) {
      const auto x = formats::vectors::load<Words>(sums + Isa::bytes * i) & 0x7FFFFFFF;
      most = x > most ? x : most;
    }
    return all_below(as<Floats>(most), largest_integer_addend);
  }

  template <Result, class C>
  [[gnu::always_inline]] static Floats load_sum(const C& x, const std::byte* from) {
    return formats::vectors::in_pair_order(formats::vectors::load<Floats>(from)) * x.scale_up;
  }
  template <Result, class C>
  [[gnu::always_inline]] static void store_sum(const C& x, std::byte* to, const Floats& sum) {
    formats::vectors::store(to, formats::vectors::from_pair_order(sum * x.scale_down));
  }
};

}  // namespace guardbit::emulator::fused
