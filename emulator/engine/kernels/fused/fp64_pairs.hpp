#pragma once

// The operations of fused_tile.hpp in FP64's lanes. Included where the instruction set is allowed.
//
// What lies between two blocks is done for two vectors at once, on the high and the low words of
// their doubles, which stand in pair order (vector.hpp) in one vector: exponents and signs are in
// the high words, counts in the low ones.
//
// An exponent E has the code E + 159, which is its field in a sum of FP64's lanes (claim 4) less
// bit 10: that bit is set for every E and X.
//
// FP16 results are FP64 numbers, too. Where none of a half is subnormal or too large, they are
// rounded to 11 bits as integers (infinities and NaNs have no bit that this loses); else they take
// the conversion to FP16, which names its direction, from 21 bits of the sum of which the last is
// set where anything is lost:
//
//   Claim 5. Cut to 21 bits or more with the last bit set where anything is lost, a number rounds
//   to 11 bits, or fewer, to nearest even as it does itself. Proof. Ties of 11 bits or fewer have
//   12; a number that is none keeps a bit set below those.
//
//   Claim 6. The sum of two FP32 numbers in FP64, rounded in any direction, rounds to FP32 to
//   nearest even as the exact sum does. Proof. Where the first sum is not exact, the smaller number
//   is below 2^-28 of the larger one's power of two, hence the sum is nearer to the larger number
//   than to any tie, and stays there. (The sum of two FP16 numbers in FP64 is exact.)

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "emulator/engine/kernels/fused/byte_maximum.hpp"
#include "emulator/engine/kernels/fused/fused_tile.hpp"

namespace guardbit::emulator::fused {

using formats::vectors::high_words;
using formats::vectors::low_words;
using formats::vectors::of_words;
using formats::vectors::Pair;

template <class Isa>
struct Fp64Pairs {
  using Set = Isa;
  using Value = double;
  using Vector = typename Isa::Doubles;
  using Bits = typename Isa::Longs;
  using Words = typename Isa::Words;
  using Integers = typename Isa::template Of<std::int32_t>;
  using Floats = typename Isa::Floats;
  using Bytes = typename Isa::Bytes;
  using Shorts = typename Isa::Shorts;
  using Turned = Pair<Vector>;
  template <Result Kind>
  using Sum = Turned;
  using Shape = TileShape<Isa, double>;
  static constexpr int rows = Shape::rows, columns = Shape::columns, vectors = Shape::vectors;
  static constexpr int together = 2, pairs = vectors / 2, row_groups = rows / rows_together;
  static constexpr int sign_group = 8;
  static constexpr std::ptrdiff_t a_step = 8 * rows, b_step = 8 * columns;
  static constexpr std::ptrdiff_t a_sign_step = 2 * rows, b_sign_step = 2 * 4 * columns;
  static constexpr bool any_exponents = true, composes = true;
  /// Registers hold the accumulators of half a tile.
  static constexpr bool halves_apart = Isa::bytes < 64;
  /// Are addends cut to FP32 where a block begins? Their exponents are known sooner then.
  static constexpr bool cuts_addends = halves_apart;
  /// Are a half's FP16 results rounded as normal numbers where all of them are?
  static constexpr bool rounds_normal = halves_apart;
  /// Products between the halves of a tile elsewhere.
  template <int BlockK>
  static constexpr int lag = std::min(16, BlockK);
  /// Places of B's panel that stay in the first-level cache, and of A's rows in the second.
  static constexpr int strip = 256, part_places = 256;

  static constexpr int fraction_bits = 52, high_bits = fraction_bits - 32;
  static constexpr std::uint32_t sign_bit = 0x80000000;

  /// Sums never leave the lanes.
  template <int BlockK>
  static constexpr bool may_overflow = false;
  struct Most {};

  template <Result Kind, bool General>
  struct Constants {
    /// Of exponents' codes.
    static constexpr int bias = fp64_scale_exponent - 1;
    /// Are nonzero addends' exponents raised?
    static constexpr bool needs_addend_floor = General || Kind == Result::fp16;
    Words offset, least_addend;
    Bits exponent_field;
    Vector nudged_one;
    Shorts zero_exponent;
    int least_code;
    explicit Constants(const TileRule& rule)
        : offset(code(fp64_scale_exponent + 1023 - bias + fraction_bits - rule.kept_fraction_bits) +
                 (1U << (high_bits - 1))),
          least_addend(code((Kind == Result::fp16 ? -14 : -126) + bias)),
          exponent_field(fill<Bits>(std::uint64_t{0x5FF} << fraction_bits)),
          nudged_one(fill<Vector>(nudge<double>)),
          zero_exponent(fill<Shorts>(static_cast<std::uint16_t>((rule.zero_exponent + bias) << 4))),
          least_code((Kind == Result::fp16 ? rule.zero_exponent : -127) + bias) {}
  };
  /// An exponent's code in high words.
  static Words code(int x) { return fill<Words>(static_cast<std::uint32_t>(x) << high_bits); }

  template <class V>
  [[gnu::always_inline]] static V larger(const V& x, const V& y) {
    return x > y ? x : y;
  }

  template <class V>
  [[gnu::always_inline]] static V smaller(const V& x, const V& y) {
    return x < y ? x : y;
  }

  /// Codes of products' exponents, 4 bits up in 16, of two rows beside each other in a column's
  /// word: rows `step` apart in each of two vectors for four rows.
  template <int step>
  struct ExponentFields {
    ArrayOf<ArrayOf<ArrayOf<Shorts, 2>, row_groups>, pairs> of_rows;

    /// In high words.
    template <class C>
    [[gnu::always_inline]] Words of(const C&, int pair, int r) const {
      const int first = r % 4;
      const auto fields = as<Words>(of_rows[pair][r / 4][step == 1 ? first / 2 : first % 2]);
      return (step == 1 ? first % 2 : first / 2) == 0 ? fields << 16 : fields & 0xFFFF0000;
    }
  };
  struct MaximumOfCodes : ByteMaximum<Isa, rows, columns> {
    using Exponents = ExponentFields<2>;

    template <int first = 0, int last = row_groups, class C>
    [[gnu::always_inline]] void finish(const C& x, const std::array<int, 4>& lowest,
                                       Exponents& result) const {
#pragma GCC unroll 2
      for (int p = 0; p < pairs; ++p) {
#pragma GCC unroll 2
        for (int i = first; i < last; ++i) {
          const auto exponents =
              as<Shorts>(rebased(this->codes[p][i], lowest[0] + C::bias - 127, x.least_code));
          result.of_rows[p][i][0] = (exponents << 4) & 0x0FF0;
          result.of_rows[p][i][1] = (exponents >> 4) & 0x0FF0;
        }
      }
    }
  };
  /// Exponents of products in 16 bits, which hold any.
  struct MaximumOfExponents : LargestCodes<Shorts, pairs, row_groups, 2> {
    using Exponents = ExponentFields<1>;
    using Signed = typename Isa::template Of<std::int16_t>;
    static constexpr std::ptrdiff_t a_step = 2 * rows, b_step = 4 * columns;

    template <int first = 0, int last = row_groups>
    [[gnu::always_inline]] void include(const std::byte* a, const std::byte* b) {
#pragma GCC unroll 2
      for (int p = 0; p < pairs; ++p) {
        const auto of_columns = formats::vectors::load<Shorts>(b + Isa::bytes * p);
#pragma GCC unroll 4
        for (int i = 2 * first; i < 2 * last; ++i) {
          Shorts& most = this->codes[p][i];
          most = larger(fused::broadcast<Shorts, std::uint32_t>(a + 4 * i) + of_columns, most);
        }
      }
    }
    template <int first = 0, int last = row_groups, class C>
    [[gnu::always_inline]] void finish(const C& x, const std::array<int, 4>&,
                                       Exponents& result) const {
#pragma GCC unroll 2
      for (int p = 0; p < pairs; ++p) {
#pragma GCC unroll 4
        for (int i = 2 * first; i < 2 * last; ++i) {
          // Sums with a zero are negative then.
          const Shorts field =
              this->codes[p][i] + static_cast<std::uint16_t>((C::bias - 1024) * (1 << 4));
          result.of_rows[p][i / 2][i % 2] =
              as<Shorts>(larger(as<Signed>(field), as<Signed>(x.zero_exponent)));
        }
      }
    }
  };
  template <bool General>
  using Maximum = std::conditional_t<General, MaximumOfExponents, MaximumOfCodes>;

  template <Result Kind>
  [[gnu::always_inline]] static Turned zero() {
    return Turned{};
  }
  [[gnu::always_inline]] static Vector load(const std::byte* from, int v) {
    return formats::vectors::load<Vector>(from + Isa::bytes * v);
  }

  /// Numbers of negative products, a byte for each of 4 rows.
  using Counts = Bytes;
  template <int Groups, int Places>
  [[gnu::always_inline]] static Counts negative_products(const std::byte* a, const std::byte* b,
                                                         int row, int pair) {
    Counts counts{};
#pragma GCC unroll 8
    for (int g = 0; g < Groups; ++g) {
      const std::byte* const a_group = a + g * a_sign_step + row;
      const std::byte* const b_group = b + g * b_sign_step + Isa::bytes * pair;
      const auto a_negative = fused::broadcast<Bytes, std::uint32_t>(a_group);
      const auto a_positive = fused::broadcast<Bytes, std::uint32_t>(a_group + rows);
      const auto b_negative = formats::vectors::load<Bytes>(b_group);
      const auto b_positive = formats::vectors::load<Bytes>(b_group + 4 * columns);
      const Bytes negative = Isa::or_and(a_negative & b_positive, a_positive, b_negative);
      const Counts more =
          Places <= 4 ? Isa::bit_counts_of_nibbles(negative) : Isa::bit_counts(negative);
      counts = g == 0 ? more : counts + more;
    }
    return counts;
  }
  template <int Groups, class C>
  [[gnu::always_inline]] static Words low_bits(const C&, const Counts& counts, int r) {
    return Isa::byte_of_words(as<Words>(counts), r % 4);
  }

  /// The accumulators: X, of which `products` has the exponents' codes and `counts` the lowest
  /// bits, and the addend.
  template <class C>
  [[gnu::always_inline]] static Turned start(const C& x, const Words& products, const Words& counts,
                                             const Turned& addend) {
    const auto high = high_words<Words>(addend.first, addend.second);
    Words exponent = larger<Words>(products, high & (0x1FFU << high_bits));
    // Twice the high word of a number is above any code (bit 10 of its field), of zero it is 0.
    if constexpr (C::needs_addend_floor)
      exponent = larger<Words>(exponent, smaller<Words>(high << 1, x.least_addend));
    return accumulators(x, exponent, counts + (high >> 31), addend);
  }
  /// The same of an addend that is cut to FP32 here.
  template <class C>
  [[gnu::always_inline]] static Turned start_cut(const C& x, const Words& products,
                                                 const Words& counts, const Turned& addend) {
    const auto high = high_words<Words>(addend.first, addend.second);
    const Words exponent = larger<Words>(products, high & (0x1FFU << high_bits));
    return accumulators(x, exponent, counts + (high >> 31),
                        Turned{as<Vector>(as<Bits>(addend.first) & ~lost_by_fp32),
                               as<Vector>(as<Bits>(addend.second) & ~lost_by_fp32)});
  }
  template <class C>
  [[gnu::always_inline]] static Turned accumulators(const C& x, const Words& exponent,
                                                    const Words& low, const Turned& addend) {
    const Words high = exponent + x.offset;
    return {Isa::fma_down(addend.first, x.nudged_one, of_words<Vector, 0>(low, high)),
            Isa::fma_down(addend.second, x.nudged_one, of_words<Vector, 1>(low, high))};
  }

  /// The accumulator less X, which has its exponent (claim 4).
  template <class C>
  [[gnu::always_inline]] static Turned exact(const C& x, const Turned& accumulator) {
    return {Isa::less_offset(accumulator.first, x.exponent_field),
            Isa::less_offset(accumulator.second, x.exponent_field)};
  }
  template <Result Kind, bool General, class C>
  [[gnu::always_inline]] static Turned round(const C&, const Turned& exact) {
    if constexpr (Kind == Result::fp16) {
      return rounded_to_fp16(exact);
    } else if constexpr (General) {
      return {cut_to_fp32(exact.first), cut_to_fp32(exact.second)};
    } else {
      return {as<Vector>(as<Bits>(exact.first) & ~lost_by_fp32),
              as<Vector>(as<Bits>(exact.second) & ~lost_by_fp32)};
    }
  }
  /// Toward zero, to subnormal numbers too; infinite from 2^128 on.
  [[gnu::always_inline]] static Vector cut_to_fp32(const Vector& exact) {
    const Vector cut = Isa::doubles(Isa::floats_toward_zero(exact * (1 / scale<double>)));
    return Isa::replaced(cut == 0 ? Vector{} : cut * scale<double>, exact,
                         fill<Vector>(0x1p128 * scale<double>),
                         fill<Vector>(std::numeric_limits<double>::infinity()));
  }
  [[gnu::always_inline]] static Turned rounded_to_fp16(const Turned& exact) {
    const auto high = high_words<Words>(exact.first, exact.second);
    const auto low = low_words<Words>(exact.first, exact.second);
    const Words odd = high | smaller<Words>(low, fill<Words>(1));
    // FP32's field is FP64's less bits 8 to 10, as large by 2^32 with this scale.
    constexpr int up = fp32_fraction_bits - high_bits;
    const auto magnitude = as<Floats>((odd << (up + 1)) >> 1) * 0x1p-32F;
    // -0 becomes +0.
    const Floats rounded =
        Isa::fp16_rounded(as<Floats>(as<Words>(magnitude) | (high & sign_bit))) + Floats{};
    return scaled(formats::vectors::from_pair_order(rounded));
  }
  /// Right where `are_right_as_normal` finds nothing else.
  [[gnu::always_inline]] static Turned rounded_to_normal_fp16(const Turned& exact) {
    constexpr int lost_bits = fraction_bits - fp16_fraction_bits;
    return {as<Vector>(rounded_less<lost_bits>(as<Bits>(exact.first))),
            as<Vector>(rounded_less<lost_bits>(as<Bits>(exact.second)))};
  }
  /// Are all of `count` rounded sums zero, infinite, NaN or in FP16's normal range?
  template <int count>
  [[gnu::always_inline]] static bool are_right_as_normal(const ArrayOf<Turned, count>& sums) {
    constexpr auto doubled = [](double x) {
      return static_cast<std::uint32_t>(__builtin_bit_cast(std::uint64_t, x * scale<double>) >> 31);
    };
    // Doubled high words: of numbers negative as integers (bit 10 of their field), of zero 0.
    const auto are_within = [&](std::uint32_t up) __attribute__((always_inline)) {
      Integers least{};
      Words most{};
#pragma GCC unroll 8
      for (int i = 0; i < count; ++i) {
        const Words x = (high_words<Words>(sums[i].first, sums[i].second) << 1) + up;
        least = smaller<Integers>(least, as<Integers>(x));
        most = larger<Words>(most, x);
      }
      const auto below = as<Words>(least < static_cast<std::int32_t>(doubled(0x1p-14) + up));
      return !Isa::any(below | as<Words>(most >= doubled(0x1p16) + up));
    };
    // One exponent up, infinities and NaNs are beside zero.
    return __builtin_expect(are_within(0), true) || are_within(1U << (high_bits + 1));
  }
  /// The scalar addition of composed instructions (claim 6).
  template <Result Kind, class C>
  [[gnu::always_inline]] static Turned add(const C&, const Turned& a, const Turned& b) {
    const Turned sum = {a.first + b.first, a.second + b.second};
    if constexpr (Kind == Result::fp16) {
      return rounded_to_fp16(sum);
    } else {
      return {rounded_to_fp32(sum.first), rounded_to_fp32(sum.second)};
    }
  }
  /// To nearest even; infinite from 2^128 on, where products are too small for more than that.
  [[gnu::always_inline]] static Vector rounded_to_fp32(const Vector& x) {
    using Signed = typename Isa::template Of<std::int64_t>;
    constexpr auto limit =
        static_cast<std::int64_t>(__builtin_bit_cast(std::uint64_t, 0x1p128 * scale<double>));
    const Bits rounded = rounded_less<fp32_lost_bits>(as<Bits>(x));
    const auto over = as<Bits>(as<Signed>(rounded & ~(std::uint64_t{1} << 63)) >= limit);
    return as<Vector>(rounded | (over & infinity));
  }
  /// To nearest even, less so many bits of the fraction, which may carry into the exponent.
  template <int lost_bits>
  [[gnu::always_inline]] static Bits rounded_less(const Bits& bits) {
    constexpr std::uint64_t lost = (std::uint64_t{1} << lost_bits) - 1;
    const Bits odd = (bits >> lost_bits) & 1;
    return (bits + odd + (lost >> 1)) & ~lost;
  }

  /// Between strips, sums wait as FP32 numbers, in the columns' order.
  template <Result Kind>
  using Stored = Floats;
  template <Result Kind, class C>
  [[gnu::always_inline]] static Turned load_sum(const C&, const std::byte* from) {
    return scaled(formats::vectors::load<Floats>(from));
  }
  template <Result Kind, class C>
  [[gnu::always_inline]] static void store_sum(const C&, std::byte* to, const Turned& sum) {
    formats::vectors::store(to, Isa::floats(sum.first * (1 / scale<double>)));
    formats::vectors::store(to + Isa::bytes / 2, Isa::floats(sum.second * (1 / scale<double>)));
  }
  [[gnu::always_inline]] static Turned scaled(const Floats& x) {
    return {Isa::doubles(half_of<0>(x)) * scale<double>,
            Isa::doubles(half_of<1>(x)) * scale<double>};
  }

  template <Result Kind, bool General>
  [[gnu::always_inline]] static Floats load_addend(const std::byte* row, int pair) {
    if (row == nullptr) return Floats{};
    Floats c;
    if constexpr (Kind == Result::fp16) {
      using Codes = typename formats::vectors::Vectors<Isa::bytes / 2>::Shorts;
      c = Isa::fp16_numbers(formats::vectors::load<Codes>(row + Isa::bytes / 2 * pair));
    } else {
      c = formats::vectors::load<Floats>(row + Isa::bytes * pair);
    }
    return c == 0 ? Floats{} : c;
  }
  template <Result Kind, bool General>
  [[gnu::always_inline]] static void store_result(std::byte* row, int pair, const Floats& sum,
                                                  const std::byte*) {
    if constexpr (Kind == Result::fp16) {
      using Codes = typename formats::vectors::Vectors<Isa::bytes / 2>::Shorts;
      const Floats value = sum == 0 ? Floats{} : sum;
      const auto is_nan = __builtin_convertvector(value != value, Codes);
      formats::vectors::store(row + Isa::bytes / 2 * pair,
                              (Isa::fp16_codes(value) & ~is_nan) | (is_nan & 0x7FFF));
    } else {
      formats::vectors::store(row + Isa::bytes * pair,
                              sum != sum ? fill<Words>(0x7FFFFFFF) : as<Words>(sum));
    }
  }

 private:
  static constexpr int fp16_fraction_bits = 10;
  static constexpr int fp32_fraction_bits = 23, fp32_lost_bits = fraction_bits - fp32_fraction_bits;
  static constexpr std::uint64_t lost_by_fp32 = (std::uint64_t{1} << fp32_lost_bits) - 1;
  static constexpr std::uint64_t infinity = std::uint64_t{0x7FF} << fraction_bits;
};

}  // namespace guardbit::emulator::fused
