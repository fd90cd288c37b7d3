#pragma once

// Operands as the tiles of fused_tile.hpp read them. A line is a row of A or a column of B; 16 of
// them make a band, and are decoded together, one k after the other. A panel is what one tile
// reads: 8 lines of A, or `Kernel::columns` lines of B.
//
// Included once per instruction set, behind its `#pragma GCC target`: the vectors below become
// whatever that has, and every template is of a Kernel type of its own.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "emulator/engine/kernels/fused/fused_arithmetic.hpp"
#include "emulator/engine/kernels/fused/line_vectors.hpp"

namespace guardbit::emulator::fused {

inline constexpr int band_lines = 16;
inline constexpr int tile_rows = 8;
constexpr double power_of_two(int exponent) {
  return __builtin_bit_cast(double, static_cast<std::uint64_t>(1023 + exponent) << 52);
}

/// What B's factors are multiplied by (fused_tile.hpp).
template <class Value>
inline constexpr Value nudge = 1 + (sizeof(Value) == 8 ? 0x1p-30 : 0x1p-20);
/// And by this, which makes sums as many times what they stand for.
template <class Value>
inline constexpr Value scale = sizeof(Value) == 8
                                   ? static_cast<Value>(power_of_two(fp64_scale_exponent))
                                   : Value{1};

/// What of a band's factors decides how its products are summed.
struct BandRange {
  /// exponents of its nonzero finite numbers; 0, 0 without any
  int lowest = 0, highest = 0;

  void include(const BandRange& other) {
    lowest = std::min(lowest, other.lowest);
    highest = std::max(highest, other.highest);
  }
};

/// One operand over a range of places, panel by panel. A panel's arrays, one after the other:
///   values  [place][lines]     FP64 or FP32; B's with the nudge
///   codes   [place][lines]     bytes: 64 + exponent - the band's lowest; 0 for zero
///   exponents [place][lines]   16 bits: (512 + exponent) << 4; 0 for zero. Only where asked for
///   signs   [group][2][lines]  bit i: factor i of the group is negative; is positive
/// B's codes, exponents and signs are repeated so that a tile's rows find them side by side.
struct PanelLayout {
  std::size_t values = 0, codes = 0, exponents = 0, signs = 0, size = 0;
  std::size_t value_step = 0, code_step = 0, exponent_step = 0, sign_step = 0;

  PanelLayout() = default;
  PanelLayout(std::size_t places, std::size_t groups, std::size_t value_bytes,
              std::size_t code_bytes, std::size_t exponent_bytes, std::size_t sign_bytes)
      : value_step(value_bytes),
        code_step(code_bytes),
        exponent_step(exponent_bytes),
        sign_step(sign_bytes) {
    const auto rounded = [](std::size_t bytes) { return (bytes + 63) / 64 * 64; };
    codes = rounded(places * value_step);
    exponents = codes + rounded(places * code_step);
    signs = exponents + rounded(places * exponent_step);
    size = signs + rounded(groups * sign_step);
  }
};

/// A's side of a band: 2 panels of 8 rows.
template <class Value>
struct RowWriter {
  static constexpr bool is_double = sizeof(Value) == 8;
  static constexpr int lines = tile_rows;
  static constexpr std::size_t panels = band_lines / lines;

  static PanelLayout layout(std::size_t places, std::size_t groups, bool with_exponents) {
    return {places,
            groups,
            lines * sizeof(Value),
            lines,
            with_exponents ? lines * 2U : 0,
            2U * lines * (is_double ? 2 : 4)};
  }

  /// For the band of a strip's panels at `memory`.
  static RowWriter at(const PanelLayout& layout, std::byte* memory, std::int64_t band) {
    return {layout, memory + layout.size * panels * static_cast<std::size_t>(band)};
  }

  PanelLayout layout_of;
  std::byte* panel;

  /// Writes the vector's parts to the panels, one part each.
  template <class Vector>
  [[gnu::always_inline]] void spread(std::size_t at, const Vector& v) const {
    std::array<std::byte, sizeof v> bytes;
    std::memcpy(bytes.data(), &v, sizeof v);
    for (std::size_t p = 0; p < panels; ++p)
      std::memcpy(panel + p * layout_of.size + at, bytes.data() + p * sizeof v / panels,
                  sizeof v / panels);
  }
  template <class Vector>
  [[gnu::always_inline]] void values(std::size_t place, const Vector& v) const {
    spread(layout_of.values + place * layout_of.value_step, v);
  }
  [[gnu::always_inline]] void codes(std::size_t place, const Integers& v) const {
    spread(layout_of.codes + place * layout_of.code_step, __builtin_convertvector(v, Bytes));
  }
  [[gnu::always_inline]] void exponents(std::size_t place, const Integers& v) const {
    spread(layout_of.exponents + place * layout_of.exponent_step,
           __builtin_convertvector(v, Shorts));
  }
  [[gnu::always_inline]] void signs(std::size_t group, bool positive, const Words& v) const {
    const std::size_t at =
        layout_of.signs + group * layout_of.sign_step + (positive ? layout_of.sign_step / 2 : 0);
    if constexpr (is_double) {
      spread(at, __builtin_convertvector(v, Shorts));
    } else {
      spread(at, v);
    }
  }
};

/// B's side of a band: 16 of a panel's columns, which are two vectors of FP64 or one of FP32. What
/// a tile combines with 4 rows at once stands 4 times side by side: codes in 32 bits, exponents,
/// and signs of FP64's lanes, in 64.
template <class Value, int Columns>
struct ColumnWriter {
  static constexpr bool is_double = sizeof(Value) == 8;
  static constexpr int lines = Columns;
  static constexpr std::size_t sign_bytes = is_double ? 8 : 4;

  static PanelLayout layout(std::size_t places, std::size_t groups, bool with_exponents) {
    return {places,
            groups,
            Columns * sizeof(Value),
            Columns * std::size_t{4},
            with_exponents ? Columns * std::size_t{8} : 0,
            2 * Columns * sign_bytes};
  }

  static ColumnWriter at(const PanelLayout& layout, std::byte* memory, std::int64_t band) {
    const std::int64_t line = band * band_lines;
    return {layout, memory + layout.size * static_cast<std::size_t>(line / lines),
            static_cast<std::size_t>(line % lines)};
  }

  PanelLayout layout_of;
  std::byte* panel;
  std::size_t first_column;

  [[gnu::always_inline]] static void store_twice(std::byte* to, const Words& v) {
    store(to, __builtin_shufflevector(v, v, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7));
    store(to + 64, __builtin_shufflevector(v, v, 8, 8, 9, 9, 10, 10, 11, 11, 12, 12, 13, 13, 14, 14,
                                           15, 15));
  }
  /// Every number four times in a row, in 16 bits.
  [[gnu::always_inline]] static void store_copies(std::byte* to, const Words& v) {
    store_twice(to, v * 0x10001U);
  }
  template <class Vector>
  [[gnu::always_inline]] void values(std::size_t place, const Vector& v) const {
    store(panel + layout_of.values + place * layout_of.value_step + first_column * sizeof(Value),
          v * (nudge<Value> * scale<Value>));
  }
  [[gnu::always_inline]] void codes(std::size_t place, const Integers& v) const {
    store(panel + layout_of.codes + place * layout_of.code_step + first_column * 4,
          reinterpret_cast<Words>(v) * 0x01010101U);
  }
  [[gnu::always_inline]] void exponents(std::size_t place, const Integers& v) const {
    store_copies(panel + layout_of.exponents + place * layout_of.exponent_step + first_column * 8,
                 reinterpret_cast<Words>(v));
  }
  [[gnu::always_inline]] void signs(std::size_t group, bool positive, const Words& v) const {
    std::byte* const to = panel + layout_of.signs + group * layout_of.sign_step +
                          (positive ? layout_of.sign_step / 2 : 0) + first_column * sign_bytes;
    if constexpr (is_double) {
      store_copies(to, v);
    } else {
      store(to, v);
    }
  }
};

}  // namespace guardbit::emulator::fused
