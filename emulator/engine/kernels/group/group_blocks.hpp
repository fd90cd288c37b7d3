#pragma once

// The tile of group_tile.hpp in the vectors of an instruction set. Included where that is allowed.

#include <cfenv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>

#include "emulator/engine/kernels/group/group_tile.hpp"
#include "formats/support/vectors/vector.hpp"

namespace guardbit::emulator::groups {

/// What the claims say of a block.
enum class Kind {
  /// claim 2: no term is cut; results are FP32's normal numbers or exact
  uncut,
  /// claim 3: terms may be cut; exponents are those of FP32's normal numbers
  normal,
  /// neither
  general
};

template <class Isa, int Quads>
class BlockSums {
  using Words = typename Isa::Words;
  using Longs = typename Isa::Longs;
  using Bytes = typename Isa::Bytes;
  using Doubles = typename Isa::Doubles;
  using ByteDots = typename Isa::ByteDots;
  using Dots = decltype(ByteDots::begin(Words{}));
  using HalfFloats = typename formats::vectors::Vectors<Isa::bytes / 2>::Floats;
  template <class Element, int size>
  using Array = formats::vectors::ArrayOf<Element, size>;

  static constexpr int lanes = Isa::bytes / 4, vectors = tile_columns / lanes;
  /// vectors of columns whose sums are in registers
  static constexpr int together = 2;
  static constexpr int fraction_bits = 52, bias = exponent_bias;
  static constexpr double nudge = 1 + 0x1p-47;
  static constexpr std::uint64_t exponent_field = std::uint64_t{0x7FF} << fraction_bits;
  static constexpr std::uint64_t sign_bit = std::uint64_t{1} << 63;
  static constexpr int normal_exponent = -126;
  /// Of the word 1.5 * 2^20 + S if S is not negative; else it is one less, since |S| < 2^16.
  static constexpr int third_byte = first_sum >> 16 & 0xFF;

  static constexpr std::ptrdiff_t a_elements = Quads * 4 * tile_rows, a_scales = 8 * tile_rows,
                                  a_words = 4 * tile_rows;
  static constexpr std::ptrdiff_t b_elements = Quads * 4 * tile_columns,
                                  b_scales = 2 * 8 * tile_columns, b_words = 4 * tile_columns;

  template <class Vector>
  static constexpr auto as(const auto& x) {
    return formats::vectors::as<Vector>(x);
  }
  template <class Vector>
  [[gnu::always_inline]] static Vector load(const std::byte* from) {
    return formats::vectors::load<Vector>(from);
  }
  template <class Vector, class Lane>
  [[gnu::always_inline]] static Vector all(const std::byte* from) {
    return formats::vectors::broadcast<Vector, Lane>(from);
  }
  template <class Vector>
  [[gnu::always_inline]] static Vector fill(formats::vectors::LaneOf<Vector> x) {
    return formats::vectors::fill<Vector>(x);
  }
  [[gnu::always_inline]] static Doubles all_doubles(const std::byte* from) {
    double x = 0;
    std::memcpy(&x, from, sizeof x);
    return Isa::all(x);
  }

  /// Even and odd columns of each vector of words.
  struct Sums {
    Array<Array<Doubles[2], vectors>, tile_rows> of;
  };

  /// As the high 12 bits of an FP64 number.
  static constexpr std::uint64_t field_of(int exponent) {
    return static_cast<std::uint64_t>(exponent + bias) << fraction_bits;
  }
  /// The high word of 2^exponent, doubled.
  static constexpr std::uint32_t word(int exponent) {
    return static_cast<std::uint32_t>(exponent + bias) << 21;
  }
  /// The group's sums S and 1.5 * 2^20, of even or odd columns.
  [[gnu::always_inline]] static Doubles numbers_of(const Words& dots, int parity) {
    const Longs pairs = as<Longs>(dots);
    return as<Doubles>(parity == 0 ? pairs << 32 : pairs & ~std::uint64_t{0xFFFFFFFF});
  }
  /// FP32's 23 fraction bits (claim 3).
  [[gnu::always_inline]] static Doubles without_low_bits(const Doubles& x) {
    return as<Doubles>(as<Longs>(x) & ~((std::uint64_t{1} << (fraction_bits - 23)) - 1));
  }

  /// The panels from block to block.
  static void advance(Panel& a, Panel& b) {
    a.elements += groups_of_block * a_elements;
    a.scales += groups_of_block * a_scales;
    a.starts += groups_of_block * a_words;
    a.nonzero += groups_of_block * a_words;
    a.exponents += groups_of_block * a_words;
    ++a.ranges;
    b.elements += groups_of_block * b_elements;
    b.scales += groups_of_block * b_scales;
    b.nonzero += groups_of_block * b_words;
    b.exponents += groups_of_block * b_words;
    ++b.ranges;
  }

  /// The high word of a number, without its sign, compares as the number does; zeros, infinities
  /// and NaNs count as large from below, as small from above.
  [[gnu::always_inline]] static Kind kind_of(const ScaleRule& rule, const Panel& a, const Panel& b,
                                             const Sums& sums) {
    const int lowest = a.ranges->lowest + b.ranges->lowest;
    const int highest = a.ranges->highest + b.ranges->highest;
    const int reach = kept_fraction_bits - rule.fraction_bits;
    if (lowest > highest) return Kind::uncut;  // nothing is added
    if (lowest < rule.fraction_bits - 149 || highest > 112) return Kind::general;
    const Kind if_cut = lowest < normal_exponent ? Kind::general : Kind::normal;
    Words smallest = ~Words{}, largest{};
#pragma GCC unroll 4
    for (int r = 0; r < tile_rows; ++r) {
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) {
        const Words magnitudes = Isa::high_words(sums.of[r][v][0], sums.of[r][v][1]) << 1;
        const Words above = magnitudes + (1U << 21), below = magnitudes - 1;
        largest = above > largest ? above : largest;
        smallest = below < smallest ? below : smallest;
      }
    }
    const auto reaches = [](const Words& x, std::uint32_t limit) __attribute__((always_inline)) {
      return Isa::any(Isa::at_least(x, fill<Words>(limit)));
    };
    if (reaches(largest, word(127))) return Kind::general;
    const bool is_uncut = highest - lowest <= reach &&
                          !reaches(largest, word(lowest + reach + 2)) &&
                          !reaches(~smallest, ~(word(highest - 12) - 1) + 1);
    return is_uncut ? Kind::uncut : if_cut;
  }

  /// The dot products of the four rows' quads and so many vectors of columns from `v` on.
  template <int count>
  struct Products {
    Array<Array<Words, count>, tile_rows> of;

    [[gnu::always_inline]] Products(const Panel& a, const Panel& b, int g, int v) {
      const std::byte* const rows = a.elements + g * a_elements;
      const std::byte* const columns = b.elements + g * b_elements + v * Isa::bytes;
      Array<Words, tile_rows> starts;
      Array<Array<Dots, count>, tile_rows> dots;
#pragma GCC unroll 4
      for (int r = 0; r < tile_rows; ++r) {
        starts[r] = all<Words, std::uint32_t>(a.starts + g * a_words + 4 * r);
#pragma GCC unroll 2
        for (int i = 0; i < count; ++i) dots[r][i] = ByteDots::begin(starts[r]);
      }
#pragma GCC unroll 8
      for (int q = 0; q < Quads; ++q) {
        Array<Bytes, count> factors;
#pragma GCC unroll 2
        for (int i = 0; i < count; ++i)
          factors[i] = load<Bytes>(columns + (q * vectors + i) * Isa::bytes);
#pragma GCC unroll 4
        for (int r = 0; r < tile_rows; ++r) {
          const auto row = all<Bytes, std::uint32_t>(rows + (q * tile_rows + r) * 4);
#pragma GCC unroll 2
          for (int i = 0; i < count; ++i) dots[r][i] = ByteDots::add(dots[r][i], factors[i], row);
        }
      }
#pragma GCC unroll 4
      for (int r = 0; r < tile_rows; ++r) {
#pragma GCC unroll 2
        for (int i = 0; i < count; ++i) of[r][i] = ByteDots::end(dots[r][i], starts[r]);
      }
    }
  };

  [[gnu::always_inline]] static void add_uncut_block(const Panel& a, const Panel& b, Sums& sums) {
#pragma GCC unroll 1
    for (int first = 0; first < vectors; first += together) {
#pragma GCC unroll 1
      for (int g = 0; g < groups_of_block; ++g) {
        const Products<together> dots(a, b, g, first);
#pragma GCC unroll 2
        for (int i = 0; i < together; ++i) {
#pragma GCC unroll 2
          for (int p = 0; p < 2; ++p) {
            const std::byte* const at =
                b.scales + g * b_scales + ((first + i) * 2 + p) * Isa::bytes;
            const auto scale = load<Doubles>(at), start = load<Doubles>(at + 8 * tile_columns);
#pragma GCC unroll 4
            for (int r = 0; r < tile_rows; ++r) {
              Doubles& sum = sums.of[r][first + i][p];
              const Doubles scaled = Isa::fma(numbers_of(dots.of[r][i], p), scale, start);
              sum = Isa::fma(scaled, all_doubles(a.scales + g * a_scales + 8 * r), sum);
            }
          }
        }
      }
#pragma GCC unroll 4
      for (int r = 0; r < tile_rows; ++r) {
#pragma GCC unroll 2
        for (int i = 0; i < together; ++i)
          for (Doubles& sum : sums.of[r][first + i]) sum = without_low_bits(sum);
      }
    }
  }

  /// A difference of equals is +0, in whatever direction the thread rounds.
  [[gnu::always_inline]] static Doubles difference(const Doubles& x, const Doubles& y) {
    if constexpr (Isa::names_rounding) return x - y;
    return as<Doubles>(as<Longs>(y - x) ^ sign_bit);
  }
  /// To FP32's numbers toward zero, 2^128 and more to infinity, zeros to +0.
  [[gnu::always_inline]] static Doubles rounded(const Doubles& exact) {
    const Doubles kept = Isa::doubles(Isa::floats_toward_zero(exact));
    const Doubles x = Isa::replaced(kept, exact, fill<Doubles>(0x1p128),
                                    fill<Doubles>(std::numeric_limits<double>::infinity()));
    return x == 0 ? Doubles{} : x;
  }

  /// A block of a vector of columns whose terms may be cut: its groups' sums times B's scales, of
  /// even and odd columns; for every column E + 1023 of the groups, e0's at least, and the number
  /// of negative ones.
  struct CutBlock {
    Doubles scaled[tile_rows][groups_of_block][2];
    Words largest[tile_rows], negatives[tile_rows];
  };

  /// The scales of a block's rows, nudged.
  struct NudgedScales {
    alignas(64) double of[groups_of_block * tile_rows];

    explicit NudgedScales(const std::byte* scales) {
      constexpr int count = groups_of_block * tile_rows, step = Isa::bytes / 8;
      for (int i = 0; i < count; i += step)
        formats::vectors::store(of + i, load<Doubles>(scales + 8 * i) * nudge);
    }
  };

  template <Kind kind>
  [[gnu::always_inline]] static void find_terms(const Panel& a, const Panel& b, int v,
                                                CutBlock& block) {
#pragma GCC unroll 4
    for (int r = 0; r < tile_rows; ++r) {
      block.largest[r] = fill<Words>(static_cast<std::uint32_t>(
          (kind == Kind::normal ? normal_exponent : zero_exponent) + bias));
      block.negatives[r] = fill<Words>(groups_of_block * third_byte);
    }
#pragma GCC unroll 4
    for (int g = 0; g < groups_of_block; ++g) {
      const Products<1> dots(a, b, g, v);
      const std::byte* const at = b.scales + g * b_scales + v * 2 * Isa::bytes;
      const Doubles scales[2] = {load<Doubles>(at), load<Doubles>(at + Isa::bytes)};
      const std::byte* const starts_at = at + 8 * tile_columns;
      const Doubles starts[2] = {load<Doubles>(starts_at), load<Doubles>(starts_at + Isa::bytes)};
      const auto exponents = load<Words>(b.exponents + g * b_words + v * Isa::bytes);
      const auto nonzero = load<Words>(b.nonzero + g * b_words + v * Isa::bytes);
#pragma GCC unroll 4
      for (int r = 0; r < tile_rows; ++r) {
        const int row = g * tile_rows + r;
        const Words counts = nonzero & all<Words, std::uint32_t>(a.nonzero + 4 * row);
        const Words sum = exponents + all<Words, std::uint32_t>(a.exponents + 4 * row);
        block.largest[r] = Isa::larger_where(counts, block.largest[r], sum);
        block.negatives[r] = Isa::less_third_byte(block.negatives[r], dots.of[r][0]);
#pragma GCC unroll 2
        for (int p = 0; p < 2; ++p)
          block.scaled[r][g][p] = Isa::fma(numbers_of(dots.of[r][0], p), scales[p], starts[p]);
      }
    }
  }

  /// c and the terms of the even or odd columns of a row, cut and added.
  template <Kind kind>
  [[gnu::always_inline]] static Doubles cut_and_add(const CutBlock& block, int r, int p,
                                                    const Doubles (&scales)[groups_of_block],
                                                    const Doubles& c) {
    using Signed = typename Isa::template Of<std::int64_t>;
    const Longs largest = as<Longs>(block.largest[r]), counts = as<Longs>(block.negatives[r]);
    const auto of_groups = as<Signed>(p == 0 ? largest << 52 : (largest << 20) & exponent_field);
    const Longs negatives = p == 0 ? counts & 0xFFFFFFFF : counts >> 32;
    const Longs c_bits = as<Longs>(c);
    auto of_c = as<Signed>(c_bits & exponent_field);
    // A nonzero addend's exponent is -126 at least, as a normal block's is; an infinity's may be
    // any.
    if constexpr (kind == Kind::general) {
      const Signed least = Signed{} + static_cast<std::int64_t>(field_of(normal_exponent));
      of_c = c_bits != 0 ? (of_c > least ? of_c : least) : Signed{};
    }
    constexpr std::uint64_t above =
        (std::uint64_t{fraction_bits - kept_fraction_bits} << fraction_bits) |
        (std::uint64_t{1} << (fraction_bits - 1));
    const Longs offset = as<Longs>(of_groups > of_c ? of_groups : of_c) + above;
    const Longs start = offset + negatives + (c_bits >> 63);
    Doubles sum = Isa::fma_down(c, fill<Doubles>(nudge), as<Doubles>(start));
#pragma GCC unroll 4
    for (int g = 0; g < groups_of_block; ++g)
      sum = Isa::fma_down(block.scaled[r][g][p], scales[g], sum);
    const Doubles exact = difference(sum, as<Doubles>(offset));
    return kind == Kind::normal ? without_low_bits(exact) : rounded(exact);
  }

  template <Kind kind>
  [[gnu::noinline]] static void cut_and_add_block(const Panel& a, const Panel& b, Sums& sums) {
    const NudgedScales rows(a.scales);
    for (int v = 0; v < vectors; ++v) {
      CutBlock block;
      find_terms<kind>(a, b, v, block);
#pragma GCC unroll 4
      for (int r = 0; r < tile_rows; ++r) {
        Doubles scales[groups_of_block];
#pragma GCC unroll 4
        for (int g = 0; g < groups_of_block; ++g) scales[g] = Isa::all(rows.of[g * tile_rows + r]);
#pragma GCC unroll 2
        for (int p = 0; p < 2; ++p)
          sums.of[r][v][p] = cut_and_add<kind>(block, r, p, scales, sums.of[r][v][p]);
      }
    }
  }
  /// Where instructions do not name their rounding, the thread rounds down meanwhile.
  template <Kind kind>
  [[gnu::noinline]] static void add_cut_block(const Panel& a, const Panel& b, Sums& sums) {
    if constexpr (!Isa::names_rounding) std::fesetround(FE_DOWNWARD);
    cut_and_add_block<kind>(a, b, sums);
    if constexpr (!Isa::names_rounding) std::fesetround(FE_TONEAREST);
  }

  /// FP32 numbers to FP64's even and odd ones, and back.
  template <int... lane>
  [[gnu::always_inline]] static void read(const std::byte* from, Doubles (&sums)[2],
                                          std::integer_sequence<int, lane...>) {
    const auto x = load<typename Isa::Floats>(from);
    sums[0] = Isa::doubles(__builtin_shufflevector(x, x, (2 * lane)...));
    sums[1] = Isa::doubles(__builtin_shufflevector(x, x, (2 * lane + 1)...));
    for (Doubles& sum : sums) sum += Doubles{};  // -0 becomes +0
  }
  template <int... lane>
  [[gnu::always_inline]] static void write(std::byte* to, const Doubles (&sums)[2],
                                           std::integer_sequence<int, lane...>) {
    const HalfFloats even = Isa::floats(sums[0]), odd = Isa::floats(sums[1]);
    const auto x = __builtin_shufflevector(even, odd, (lane / 2 + lane % 2 * (lanes / 2))...);
    formats::vectors::store(to, x != x ? fill<Words>(0x7FFFFFFF) : as<Words>(x));
  }

 public:
  static void add_blocks(const ScaleRule& rule, const Panel& a_panel, const Panel& b_panel,
                         std::int64_t blocks, const std::byte* from, std::int64_t from_stride,
                         std::byte* to, std::int64_t to_stride) {
    Panel a = a_panel, b = b_panel;
    Sums sums;
#pragma GCC unroll 4
    for (int r = 0; r < tile_rows; ++r) {
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) {
        sums.of[r][v][0] = sums.of[r][v][1] = Doubles{};
        if (from != nullptr)
          read(from + r * from_stride + Isa::bytes * v, sums.of[r][v],
               std::make_integer_sequence<int, lanes / 2>());
      }
    }
    for (std::int64_t block = 0; block < blocks; ++block) {
      if (const Kind kind = kind_of(rule, a, b, sums); kind == Kind::uncut) {
        add_uncut_block(a, b, sums);
      } else {
        Sums copy = sums;  // so that the others may live in registers
        (kind == Kind::normal ? add_cut_block<Kind::normal> : add_cut_block<Kind::general>)(a, b,
                                                                                            copy);
        sums = copy;
      }
      advance(a, b);
    }
#pragma GCC unroll 4
    for (int r = 0; r < tile_rows; ++r) {
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v)
        write(to + r * to_stride + Isa::bytes * v, sums.of[r][v],
              std::make_integer_sequence<int, lanes>());
    }
  }
};

template <class Isa>
void convert(const GroupLines& lines, const std::byte* table, std::uint32_t* nonzero,
             std::int32_t* sums) {
  using Bytes = formats::vectors::Vectors<16>::Bytes;
  const auto bytes_of_codes = formats::vectors::load<Bytes>(table);
  Bytes total{}, bits{};
  for (int q = 0; q < lines.quads; ++q) {
    std::byte* const at = lines.elements + q * lines.quad_step;
    const Bytes codes = formats::vectors::load<Bytes>(at) & 15;
    const Bytes bytes = Isa::looked_up(bytes_of_codes, codes);
    formats::vectors::store(at, bytes);
    total += bytes;
    // A variable: GCC 12 with sanitizers takes the cast alone for an int.
    const auto bit = static_cast<std::uint8_t>(1 << q);
    bits |= formats::vectors::as<Bytes>((codes & 7) != 0) & bit;
  }
  formats::vectors::store(nonzero, bits);
  formats::vectors::store(sums, Isa::byte_sums(total));
}

/// For groups of 16 or, of sparse instructions, 32 places.
template <class Isa>
Functions functions_of(int places_of_group) {
  constexpr int lanes = Isa::bytes / 4;
  if (places_of_group == 16) return {BlockSums<Isa, 4>::add_blocks, convert<Isa>, lanes};
  if (places_of_group == 32) return {BlockSums<Isa, 8>::add_blocks, convert<Isa>, lanes};
  return {};
}

}  // namespace guardbit::emulator::groups
