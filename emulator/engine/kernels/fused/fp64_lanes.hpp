#pragma once

// The operations of fused_tile.hpp in FP64's lanes, for instruction sets that name their rounding.
// Included where the instruction set is allowed.

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "emulator/engine/kernels/fused/byte_maximum.hpp"
#include "emulator/engine/kernels/fused/fused_tile.hpp"

namespace guardbit::emulator::fused {

template <class Isa>
struct Fp64Lanes {
  using Set = Isa;
  using Value = double;
  using Vector = typename Isa::Doubles;
  using Turned = Vector;
  template <Result>
  using Sum = Vector;
  using Bits = typename Isa::Longs;
  using Shorts = typename Isa::Shorts;
  using Half = formats::vectors::Vectors<Isa::bytes / 2>;
  using Shape = TileShape<Isa, double>;
  static constexpr int rows = Shape::rows, columns = Shape::columns, vectors = Shape::vectors;
  static constexpr int row_groups = rows / rows_together;
  static constexpr int sign_group = 16;
  static constexpr std::ptrdiff_t a_step = 8 * rows, b_step = 8 * columns;
  static constexpr std::ptrdiff_t a_sign_step = 4 * rows, b_sign_step = 2 * 8 * columns;

  /// Of exponents as they stand in sums.
  static constexpr int bias = 1023 + fp64_scale_exponent, fraction_bits = 52;
  static constexpr bool any_exponents = true;
  static constexpr Lag lag = Lag::half;
  static constexpr bool composes = true;
  /// Places of B's panel that stay in the first-level cache, and of A's rows in the second.
  static constexpr int strip = 256, part_places = 256;

  template <Result Kind, bool General>
  struct Constants {
    static constexpr bool needs_addend_floor = General || Kind == Result::fp16;
    Bits offset_bits, exponent_field, half, low;
    Shorts zero_exponent;
    Vector least_addend, nudged_one;
    int least_code;
    explicit Constants(const TileRule& rule)
        : offset_bits(
              fill<Bits>((static_cast<std::uint64_t>(fraction_bits - rule.kept_fraction_bits)
                          << fraction_bits) +
                         (std::uint64_t{1} << (fraction_bits - 1)))),
          exponent_field(fill<Bits>(std::uint64_t{0x5FF} << fraction_bits)),
          half(fill<Bits>(std::uint64_t{1} << (fraction_bits - 1))),
          low(fill<Bits>(0xFFFF)),
          zero_exponent(fill<Shorts>(static_cast<std::uint16_t>((rule.zero_exponent + bias) << 4))),
          least_addend(fill<Vector>((Kind == Result::fp16 ? 0x1p-14 : 0x1p-126) * scale<double>)),
          nudged_one(fill<Vector>(nudge<double>)),
          least_code(Kind == Result::fp16 ? rule.zero_exponent + 127 : 0) {}
  };

  /// Exponents of products as the high 16 bits of FP64, 4 rows in 64 bits.
  struct ExponentFields {
    ArrayOf<ArrayOf<Shorts, row_groups>, vectors> fields;

    template <class C>
    [[gnu::always_inline]] Vector of(const C&, int v, int r) const {
      const Bits of_rows = as<Bits>(fields[v][r / 4]);
      return as<Vector>(r % 4 == 3 ? of_rows : of_rows << (48 - 16 * (r % 4)));
    }
  };
  struct MaximumOfCodes : ByteMaximum<Isa, rows, columns> {
    using Exponents = ExponentFields;
    template <int first = 0, int last = row_groups, class C>
    [[gnu::always_inline]] void finish(const C& x, const std::array<int, 4>& lowest,
                                       Exponents& result) const {
#pragma GCC unroll 2
      for (int v = 0; v < vectors; v += 2) {
#pragma GCC unroll 2
        for (int i = first; i < last; ++i) {
          const auto exponents = rebased(this->codes[v / 2][i], lowest[0], x.least_code);
          const auto field = [](const auto& bytes) __attribute__((always_inline)) {
            return (Isa::shorts(bytes) << 4) + std::uint16_t{(bias - 127) << 4};
          };
          result.fields[v][i] = field(half_of<0>(exponents));
          result.fields[v + 1][i] = field(half_of<1>(exponents));
        }
      }
    }
  };
  /// Exponents of products in 16 bits, which hold any.
  struct MaximumOfExponents : LargestCodes<Shorts, vectors, row_groups> {
    using Exponents = ExponentFields;
    static constexpr std::ptrdiff_t a_step = 2 * rows, b_step = 8 * columns;

    template <int first = 0, int last = row_groups>
    [[gnu::always_inline]] void include(const std::byte* a, const std::byte* b) {
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) {
        const auto of_columns = formats::vectors::load<Shorts>(b + Isa::bytes * v);
#pragma GCC unroll 2
        for (int i = first; i < last; ++i) {
          const Shorts sum = fused::broadcast<Shorts, std::uint64_t>(a + 8 * i) + of_columns;
          Shorts& most = this->codes[v][i];
          most = sum > most ? sum : most;
        }
      }
    }
    template <int first = 0, int last = row_groups, class C>
    [[gnu::always_inline]] void finish(const C& x, const std::array<int, 4>&,
                                       Exponents& result) const {
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) {
#pragma GCC unroll 2
        for (int i = first; i < last; ++i) {
          const Shorts field = this->codes[v][i] + static_cast<std::uint16_t>((bias - 1024) << 4);
          result.fields[v][i] = field > x.zero_exponent ? field : x.zero_exponent;
        }
      }
    }
  };
  template <bool General>
  using Maximum = std::conditional_t<General, MaximumOfExponents, MaximumOfCodes>;

  template <Result>
  [[gnu::always_inline]] static Vector zero() {
    return Vector{};
  }
  [[gnu::always_inline]] static Vector load(const std::byte* from, int v) {
    return formats::vectors::load<Vector>(from + Isa::bytes * v);
  }
  [[gnu::always_inline]] static Vector broadcast(const std::byte* from, int r) {
    double x = 0;
    std::memcpy(&x, from + 8 * r, sizeof x);
    return Isa::all(x);
  }
  [[gnu::always_inline]] static Vector multiply_add(Vector a, Vector b, Vector sum) {
    return Isa::fma_down(a, b, sum);
  }

  /// Numbers of negative products, 16 bits for each of 4 rows.
  using Counts = Shorts;
  template <int Groups, int>
  [[gnu::always_inline]] static Counts negative_products(const std::byte* a, const std::byte* b,
                                                         int row, int v) {
    Counts counts{};
#pragma GCC unroll 4
    for (int g = 0; g < Groups; ++g) {
      const std::byte* const a_group = a + g * a_sign_step + 2 * row;
      const std::byte* const b_group = b + g * b_sign_step + Isa::bytes * v;
      const auto rows_at = [&](std::ptrdiff_t at) __attribute__((always_inline)) {
        return fused::broadcast<Shorts, std::uint64_t>(a_group + at);
      };
      const Shorts b_negative = formats::vectors::load<Shorts>(b_group);
      const Shorts b_positive = formats::vectors::load<Shorts>(b_group + 8 * columns);
      const Shorts more =
          Isa::bit_counts(Isa::or_and(rows_at(0) & b_positive, rows_at(2 * rows), b_negative));
      counts = g == 0 ? more : counts + more;
    }
    return counts;
  }
  /// What X's exponent and the count of negative products add to E's exponent field.
  template <int Groups, class C>
  [[gnu::always_inline]] static Bits low_bits(const C& x, const Counts& counts, int r) {
    const Bits of_rows = as<Bits>(counts) >> (16 * (r % 4));
    return Isa::and_or(of_rows, x.low, x.offset_bits);
  }

  template <class C>
  [[gnu::always_inline]] static Vector start(const C& x, Vector products, Bits low_bits,
                                             Vector addend) {
    Vector largest = Isa::larger_magnitude(products, addend);
    if constexpr (C::needs_addend_floor) {
      const Vector raised = Isa::larger(largest, x.least_addend);
      largest = addend != 0 ? raised : largest;
    }
    const Bits exponent = Isa::and_or(as<Bits>(largest), x.exponent_field, as<Bits>(addend) >> 63);
    return Isa::fma_down(addend, x.nudged_one, as<Vector>(exponent + low_bits));
  }
  /// The accumulator less X, which has its exponent (claim 4).
  template <class C>
  [[gnu::always_inline]] static Vector exact(const C& x, Vector accumulator) {
    const Vector offset =
        as<Vector>(Isa::select_bits(x.exponent_field, as<Bits>(accumulator), x.half));
    return accumulator - offset;
  }

  /// Rounded to nearest even to FP16's grid; infinite from 2^16 on. +0 for zeros.
  template <class C>
  [[gnu::always_inline]] static Vector rounded_to_fp16(const C& x, Vector exact) {
    const Vector largest = Isa::larger_magnitude(exact, x.least_addend);
    const Vector magic = as<Vector>(
        Isa::and_or(as<Bits>(largest) + (std::uint64_t{fraction_bits - 10} << fraction_bits),
                    x.exponent_field, x.half));
    const Vector rounded = (exact + magic) - magic;
    return infinite_from(rounded, rounded, 0x1p16);
  }
  [[gnu::always_inline]] static Vector infinite_from(Vector value, Vector compared, double limit) {
    return Isa::replaced(value, compared, fill<Vector>(limit * scale<double>),
                         fill<Vector>(std::numeric_limits<double>::infinity()));
  }
  template <Result Kind, bool General, class C>
  [[gnu::always_inline]] static Vector round(const C& x, Vector exact) {
    if constexpr (Kind == Result::fp16) {
      return rounded_to_fp16(x, exact);
    } else if constexpr (General) {
      const Vector cut = Isa::doubles(Isa::floats_toward_zero(unscaled(exact)));
      return infinite_from(scaled(cut), exact, 0x1p128);
    } else {
      return as<Vector>(as<Bits>(exact) & ~((std::uint64_t{1} << (fraction_bits - 23)) - 1));
    }
  }
  /// The scalar addition of composed instructions. FP64 holds more than twice FP32's bits, so that
  /// rounding twice is rounding once.
  template <Result Kind, class C>
  [[gnu::always_inline]] static Vector add(const C& x, Vector a, Vector b) {
    const Vector sum = a + b;
    if constexpr (Kind == Result::fp16) return rounded_to_fp16(x, sum);
    return scaled(Isa::doubles(Isa::floats(unscaled(sum))));
  }
  /// -0 becomes +0.
  [[gnu::always_inline]] static Vector scaled(Vector x) {
    return Isa::fma(x, fill<Vector>(scale<double>), Vector{});
  }
  [[gnu::always_inline]] static Vector unscaled(Vector x) { return x * (1 / scale<double>); }

  template <Result Kind, bool General>
  [[gnu::always_inline]] static Vector load_addend(const std::byte* row, int v) {
    using HalfFloats = typename Half::Floats;
    if (row == nullptr) return Vector{};
    HalfFloats value;
    if constexpr (Kind == Result::fp16) {
      using Codes = typename formats::vectors::Vectors<Isa::bytes / 4>::Shorts;
      value = Isa::fp16_numbers(formats::vectors::load<Codes>(row + Isa::bytes / 4 * v));
    } else {
      value = formats::vectors::load<HalfFloats>(row + Isa::bytes / 2 * v);
    }
    return scaled(Isa::doubles(value));
  }
  template <Result Kind, bool General>
  [[gnu::always_inline]] static void store_result(std::byte* row, int v, Vector result,
                                                  const std::byte*) {
    using HalfFloats = typename Half::Floats;
    const HalfFloats value = Isa::floats(unscaled(result));
    const auto nan = value != value;
    if constexpr (Kind == Result::fp16) {
      using Codes = typename formats::vectors::Vectors<Isa::bytes / 4>::Shorts;
      const Codes is_nan = __builtin_convertvector(nan, Codes);
      formats::vectors::store(row + Isa::bytes / 4 * v,
                              (Isa::fp16_codes(value) & ~is_nan) | (is_nan & 0x7FFF));
    } else {
      formats::vectors::store(row + Isa::bytes / 2 * v, nan ? fill<typename Half::Words>(0x7FFFFFFF)
                                                            : as<typename Half::Words>(value));
    }
  }
};

}  // namespace guardbit::emulator::fused
