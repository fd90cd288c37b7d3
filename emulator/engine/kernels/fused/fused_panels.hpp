#pragma once

// Operands as the tiles of fused_tile.hpp read them. A line is a row of A or a column of B; 16 of
// them make a band, and are decoded together, one k after the other. A panel is what one tile
// reads: its rows of A, or its columns of B.
//
// Included once per instruction set, behind its `#pragma GCC target`: the vectors below become
// whatever that has, and every template is of a Kernel type of its own.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "emulator/engine/kernels/fused/line_vectors.hpp"
#include "emulator/engine/kernels/fused/panel_layout.hpp"

namespace guardbit::emulator::fused {

/// Where a band's lines stand in its panels.
template <int Lines>
struct PanelPlaces {
  static constexpr int lines = Lines;
  /// of the band
  static constexpr std::size_t panels = Lines < band_lines ? band_lines / Lines : 1;

  PanelLayout layout_of;
  std::byte* panel;
  /// in its panel
  int first_line = 0;

  /// For the band of a strip's panels at `memory`.
  static PanelPlaces at(const PanelLayout& layout, std::byte* memory, std::int64_t band) {
    const std::int64_t line = band * band_lines;
    return {layout, memory + layout.size * static_cast<std::size_t>(line / lines),
            static_cast<int>(line % lines)};
  }

  /// Writes a vector, so many bytes for each line from `line` of the band on, to the arrays that
  /// begin at `at`.
  template <std::size_t line_bytes, class Vector>
  [[gnu::always_inline]] void put(std::size_t at, int line, const Vector& v) const {
    constexpr std::size_t together = std::min(sizeof v, lines * line_bytes);
    const auto first = static_cast<std::size_t>(first_line) + static_cast<std::size_t>(line);
    std::array<std::byte, sizeof v> bytes;
    std::memcpy(bytes.data(), &v, sizeof v);
    for (std::size_t from = 0; from < sizeof v; from += together) {
      const std::size_t l = first + from / line_bytes;
      std::memcpy(panel + l / lines * layout_of.size + at + l % lines * line_bytes,
                  bytes.data() + from, together);
    }
  }
};

/// A's side of a band, for the lanes of a tile.
template <class Lanes>
struct RowWriter {
  using Isa = typename Lanes::Set;
  using Value = typename Lanes::Value;
  static constexpr bool is_double = sizeof(Value) == 8;
  static constexpr int lines = Lanes::rows;
  /// of one line's signs of a group
  static constexpr int sign_bytes = Lanes::sign_group / 8;
  using Integers = typename LineVectors<Isa>::Integers;
  using Words = typename LineVectors<Isa>::Words;
  using Shorts = typename formats::vectors::Vectors<Isa::bytes / 2>::Shorts;
  using Bytes = typename formats::vectors::Vectors<Isa::bytes / 4>::Bytes;

  static PanelLayout layout(std::size_t places, std::size_t groups, bool with_exponents) {
    return {places,
            groups,
            lines * sizeof(Value),
            lines,
            with_exponents ? lines * 2U : 0,
            2U * lines * sign_bytes};
  }

  PanelPlaces<lines> to;

  template <class Vector>
  [[gnu::always_inline]] void values(std::size_t place, int line, const Vector& v) const {
    const PanelLayout& x = to.layout_of;
    to.template put<sizeof(Value)>(x.values + place * x.value_step, line, v);
  }
  [[gnu::always_inline]] void codes(std::size_t place, int line, const Integers& v) const {
    const PanelLayout& x = to.layout_of;
    to.template put<1>(x.codes + place * x.code_step, line, __builtin_convertvector(v, Bytes));
  }
  [[gnu::always_inline]] void exponents(std::size_t place, int line, const Integers& v) const {
    const PanelLayout& x = to.layout_of;
    to.template put<2>(x.exponents + place * x.exponent_step, line,
                       __builtin_convertvector(v, Shorts));
  }
  [[gnu::always_inline]] void signs(std::size_t group, bool positive, int line,
                                    const Words& v) const {
    const PanelLayout& x = to.layout_of;
    const std::size_t at = x.signs + group * x.sign_step + (positive ? x.sign_step / 2 : 0);
    if constexpr (sign_bytes == 1) {
      to.template put<1>(at, line, __builtin_convertvector(v, Bytes));
    } else if constexpr (sign_bytes == 2) {
      to.template put<2>(at, line, __builtin_convertvector(v, Shorts));
    } else {
      to.template put<4>(at, line, v);
    }
  }
};

/// B's side of a band, for the lanes of a tile. What a tile combines with 4 rows at once stands 4
/// times side by side: codes in 32 bits, exponents and 16 bits of signs in 64. Where two vectors
/// are turned at once, columns stand in pair order, exponents two times side by side.
template <class Lanes>
struct ColumnWriter {
  using Isa = typename Lanes::Set;
  using Value = typename Lanes::Value;
  static constexpr bool is_double = sizeof(Value) == 8;
  static constexpr bool in_pairs = sizeof(typename Lanes::Turned) > sizeof(typename Lanes::Vector);
  static constexpr int lines = Lanes::columns;
  static constexpr std::size_t sign_bytes = Lanes::sign_group == 16 ? 8 : 4;
  static constexpr std::size_t exponent_bytes = in_pairs ? 4 : 8;
  using Integers = typename LineVectors<Isa>::Integers;
  using Words = typename LineVectors<Isa>::Words;

  static PanelLayout layout(std::size_t places, std::size_t groups, bool with_exponents) {
    return {places,
            groups,
            lines * sizeof(Value),
            lines * std::size_t{4},
            with_exponents ? lines * exponent_bytes : 0,
            2 * lines * sign_bytes};
  }

  PanelPlaces<lines> to;

  [[gnu::always_inline]] static Words ordered(const Words& v) {
    if constexpr (in_pairs) return formats::vectors::in_pair_order(v);
    return v;
  }

  /// Every number four times in a row, in 16 bits.
  [[gnu::always_inline]] void put_copies(std::size_t at, int line, const Words& v) const {
    constexpr int count = LineVectors<Isa>::lanes / 2;
    const Words pairs = v * 0x10001U;
    const auto doubled = [&]<int part, int... lane>(std::integer_sequence<int, part>,
                                                    std::integer_sequence<int, lane...>)
        __attribute__((always_inline)) {
      to.template put<8>(at, line + part * count,
                         __builtin_shufflevector(pairs, pairs, (part * count + lane / 2)...));
    };
    constexpr std::make_integer_sequence<int, 2 * count> all;
    doubled(std::integer_sequence<int, 0>(), all);
    doubled(std::integer_sequence<int, 1>(), all);
  }
  template <class Vector>
  [[gnu::always_inline]] void values(std::size_t place, int line, const Vector& v) const {
    const PanelLayout& x = to.layout_of;
    to.template put<sizeof(Value)>(x.values + place * x.value_step, line,
                                   v * (nudge<Value> * scale<Value>));
  }
  [[gnu::always_inline]] void codes(std::size_t place, int line, const Integers& v) const {
    const PanelLayout& x = to.layout_of;
    to.template put<4>(x.codes + place * x.code_step, line, ordered(as<Words>(v) * 0x01010101U));
  }
  [[gnu::always_inline]] void exponents(std::size_t place, int line, const Integers& v) const {
    const PanelLayout& x = to.layout_of;
    const std::size_t at = x.exponents + place * x.exponent_step;
    if constexpr (in_pairs) {
      to.template put<4>(at, line, ordered(as<Words>(v) * 0x10001U));
    } else {
      put_copies(at, line, as<Words>(v));
    }
  }
  [[gnu::always_inline]] void signs(std::size_t group, bool positive, int line,
                                    const Words& v) const {
    const PanelLayout& x = to.layout_of;
    const std::size_t at = x.signs + group * x.sign_step + (positive ? x.sign_step / 2 : 0);
    if constexpr (in_pairs) {
      to.template put<4>(at, line, ordered(v * 0x01010101U));
    } else if constexpr (sign_bytes == 8) {
      put_copies(at, line, v);
    } else {
      to.template put<4>(at, line, v);
    }
  }
};

}  // namespace guardbit::emulator::fused
