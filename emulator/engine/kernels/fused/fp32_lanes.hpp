#pragma once

// The operations of fused_tile.hpp in FP32's lanes. Included where the instruction set is allowed.

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

#include "emulator/engine/kernels/fused/byte_maximum.hpp"
#include "emulator/engine/kernels/fused/fused_tile.hpp"

namespace guardbit::emulator::fused {

/// FP32's lanes, for narrow factors and few kept bits: every exponent is in the normal range.
template <class Isa>
struct Fp32Lanes {
  using Set = Isa;
  using Value = float;
  using Vector = typename Isa::Floats;
  using Turned = Vector;
  template <Result>
  using Sum = Vector;
  using Bits = typename Isa::Words;
  using Bytes = typename Isa::Bytes;
  using HalfShorts = typename formats::vectors::Vectors<Isa::bytes / 2>::Shorts;
  using Shape = TileShape<Isa, float>;
  static constexpr int rows = Shape::rows, columns = Shape::columns, vectors = Shape::vectors;
  static constexpr int together = 1, row_groups = rows / rows_together;
  static constexpr int sign_group = 32;
  static constexpr std::ptrdiff_t a_step = 4 * rows, b_step = 4 * columns;
  static constexpr std::ptrdiff_t a_sign_step = 8 * rows, b_sign_step = 2 * 4 * columns;

  static constexpr int bias = 127, fraction_bits = 23;
  static constexpr bool any_exponents = false, composes = false;
  /// Registers hold the accumulators of half a tile.
  static constexpr bool halves_apart = Isa::bytes < 64;
  /// As FP64's; E8M13's sums are left as they are.
  static constexpr bool cuts_addends = false, rounds_normal = false;
  /// Products between the halves of a tile elsewhere.
  template <int BlockK>
  static constexpr int lag = std::min(16, BlockK);
  static constexpr int strip = 256, part_places = 512;
  static constexpr std::uint32_t sign_bit = 0x80000000;

  /// Sums never leave the lanes.
  template <int BlockK>
  static constexpr bool may_overflow = false;
  struct Most {};

  template <Result Kind, bool General>
  struct Constants {
    static constexpr bool needs_addend_floor = Kind == Result::fp16;
    Bits offset_bits, exponent_field, half, largest_offset, addend_bits;
    Vector least_addend, nudged_one;
    int least_code;
    explicit Constants(const TileRule& rule)
        : offset_bits(
              fill<Bits>((static_cast<std::uint32_t>(fraction_bits - rule.kept_fraction_bits)
                          << fraction_bits) +
                         (1U << (fraction_bits - 1)))),
          exponent_field(fill<Bits>(0xFFU << fraction_bits)),
          half(fill<Bits>(1U << (fraction_bits - 1))),
          largest_offset(fill<Bits>(0x7F7FFFFF)),
          addend_bits(fill<Bits>(kept_of_addend)),
          least_addend(fill<Vector>(0x1p-14F)),
          nudged_one(fill<Vector>(1 + 0x1p-23F)),
          least_code(Kind == Result::fp16 ? rule.zero_exponent + 127 : 0) {}
  };
  /// FP32's bits but the fraction's beyond 13.
  static constexpr std::uint32_t kept_of_addend = ~((1U << (fraction_bits - 13)) - 1);

  /// Exponents + 127 of products, 4 rows in 32 bits.
  struct ExponentBytes {
    ArrayOf<ArrayOf<Bytes, row_groups>, vectors> bytes;

    /// The sign and the fraction are other rows' bits; neither matters to `offset`.
    template <class C>
    [[gnu::always_inline]] Vector of(const C&, int v, int r) const {
      const Bits of_rows = as<Bits>(bytes[v][r / 4]);
      return as<Vector>(r % 4 == 3 ? of_rows >> 1 : of_rows << (23 - 8 * (r % 4)));
    }
  };
  template <bool General>
  struct Maximum : ByteMaximum<Isa, rows, columns> {
    using Exponents = ExponentBytes;
    template <int first = 0, int last = row_groups, class C>
    [[gnu::always_inline]] void finish(const C& x, const std::array<int, 4>& lowest,
                                       Exponents& result) const {
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) {
        const auto band = static_cast<std::size_t>(v * Shape::width / band_lines);
#pragma GCC unroll 2
        for (int i = first; i < last; ++i)
          result.bytes[v][i] = rebased(this->codes[v][i], lowest[band], x.least_code);
      }
    }
  };

  template <Result>
  [[gnu::always_inline]] static Vector zero() {
    return Vector{};
  }
  [[gnu::always_inline]] static Vector load(const std::byte* from, int v) {
    return formats::vectors::load<Vector>(from + Isa::bytes * v);
  }

  /// The signs of a row and of the columns of a vector; they are counted in `low_bits`.
  struct Counts {
    const std::byte *a, *b;
    int v;
  };
  template <int Groups, int>
  [[gnu::always_inline]] static Counts negative_products(const std::byte* a, const std::byte* b,
                                                         int, int v) {
    return {a, b, v};
  }
  template <int Groups, class C>
  [[gnu::always_inline]] static Bits low_bits(const C& constants, const Counts& x, int r) {
    Bits bits = constants.offset_bits;
#pragma GCC unroll 4
    for (int g = 0; g < Groups; ++g) {
      const std::byte* const a_group = x.a + g * a_sign_step + 4 * r;
      const std::byte* const b_group = x.b + g * b_sign_step + Isa::bytes * x.v;
      const Bits b_negative = formats::vectors::load<Bits>(b_group);
      const Bits b_positive = formats::vectors::load<Bits>(b_group + 4 * columns);
      const Bits a_negative = fused::broadcast<Bits, std::uint32_t>(a_group);
      const Bits a_positive = fused::broadcast<Bits, std::uint32_t>(a_group + 4 * rows);
      bits += Isa::bit_counts(Isa::or_and(a_negative & b_positive, a_positive, b_negative));
    }
    return bits;
  }

  template <class C>
  [[gnu::always_inline]] static Vector start(const C& x, Vector products, Bits low_bits,
                                             Vector addend) {
    Vector largest = Isa::larger_magnitude(products, addend);
    if constexpr (C::needs_addend_floor) {
      const Vector raised = Isa::larger(largest, x.least_addend);
      largest = addend != 0 ? raised : largest;
    }
    const Bits exponent = Isa::and_or(as<Bits>(largest), x.exponent_field, as<Bits>(addend) >> 31);
    return Isa::fma_down(addend, x.nudged_one, as<Vector>(exponent + low_bits));
  }
  /// The accumulator less X, which has its exponent. X stays finite beside infinities.
  template <class C>
  [[gnu::always_inline]] static Vector exact(const C& x, Vector accumulator) {
    const Bits any = Isa::and_or(as<Bits>(accumulator), x.exponent_field, x.half);
    const Vector offset = as<Vector>(any < x.largest_offset ? any : x.largest_offset);
    return accumulator - offset;
  }
  template <Result Kind, bool General, class C>
  [[gnu::always_inline]] static Vector round(const C& x, Vector exact) {
    if constexpr (Kind == Result::fp16) return positive_zero(Isa::fp16_rounded(exact));
    return as<Vector>(as<Bits>(exact) & x.addend_bits);
  }
  /// -0 becomes +0.
  [[gnu::always_inline]] static Vector positive_zero(Vector x) { return x + Vector{}; }

  /// An addend of 2^60 or more leaves no bit of any product, and is D by itself; only general
  /// tiles look for it.
  [[gnu::always_inline]] static auto is_frozen(Vector c) {
    const Vector x = magnitude(c);
    return (x >= largest_fp32_addend) & (x < std::numeric_limits<float>::infinity());
  }
  [[gnu::always_inline]] static Vector magnitude(Vector x) {
    return as<Vector>(as<Bits>(x) & ~sign_bit);
  }
  template <Result>
  using Stored = Vector;
  template <Result, class C>
  [[gnu::always_inline]] static Vector load_sum(const C&, const std::byte* from) {
    return formats::vectors::load<Vector>(from);
  }
  template <Result, class C>
  [[gnu::always_inline]] static void store_sum(const C&, std::byte* to, const Vector& sum) {
    formats::vectors::store(to, sum);
  }

  template <Result Kind, bool General>
  [[gnu::always_inline]] static Vector load_addend(const std::byte* row, int v) {
    if (row == nullptr) return Vector{};
    if constexpr (Kind == Result::fp16) {
      return positive_zero(
          Isa::fp16_numbers(formats::vectors::load<HalfShorts>(row + Isa::bytes / 2 * v)));
    }
    // The unit never sees more than F + 1 bits of an addend.
    const auto c = formats::vectors::load<Vector>(row + Isa::bytes * v);
    const Vector cut = positive_zero(cut_addend(c));
    if constexpr (!General) return cut;
    return is_frozen(c) ? Vector{} : cut;
  }
  /// FP32's fraction beyond 13 bits cut off; NaNs stay NaNs.
  [[gnu::always_inline]] static Vector cut_addend(Vector c) {
    return c == c ? as<Vector>(as<Bits>(c) & kept_of_addend) : c;
  }
  template <Result Kind, bool General>
  [[gnu::always_inline]] static void store_result(std::byte* row, int v, Vector result,
                                                  const std::byte* c_row) {
    if constexpr (Kind == Result::fp16) {
      const auto is_nan = __builtin_convertvector(result != result, HalfShorts);
      formats::vectors::store(row + Isa::bytes / 2 * v,
                              (Isa::fp16_codes(result) & ~is_nan) | (is_nan & 0x7FFF));
    } else {
      if (General && c_row != nullptr) {
        const auto c = formats::vectors::load<Vector>(c_row + Isa::bytes * v);
        const auto finite = magnitude(result) < std::numeric_limits<float>::infinity();
        result = (is_frozen(c) & finite) != 0 ? cut_addend(c) : result;
      }
      formats::vectors::store(row + Isa::bytes * v,
                              result != result ? fill<Bits>(0x7FFFFFFF) : as<Bits>(result));
    }
  }
};

}  // namespace guardbit::emulator::fused
