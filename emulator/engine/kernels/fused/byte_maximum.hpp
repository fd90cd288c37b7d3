#pragma once

// What the lanes of fused_tile.hpp share: the shape of a tile, and exponents as bytes.

#include <cstddef>
#include <cstdint>

#include "emulator/engine/kernels/fused/fused_panels.hpp"
#include "formats/support/vectors/vector.hpp"

namespace guardbit::emulator::fused {

using formats::vectors::ArrayOf;
/// Eight rows, of which AVX-512's 32 registers hold all accumulators, and those of others four at a
/// time.
template <class Isa, class Value>
struct TileShape {
  static constexpr int width = Isa::bytes / static_cast<int>(sizeof(Value));
  static constexpr int rows = 8;
  static constexpr int columns = (Isa::bytes == 64 ? 128 : 64) / static_cast<int>(sizeof(Value));
  static constexpr int vectors = columns / width;
};

/// Codes of sums to exponents + 127, at least `least`; 0 where every product is zero.
template <class Bytes>
[[gnu::always_inline]] inline Bytes rebased(const Bytes& codes, int lowest, int least) {
  const Bytes exponents =
      codes >= 128 ? codes + static_cast<std::uint8_t>(lowest + 127 - 128) : Bytes{};
  const Bytes floor = fill<Bytes>(static_cast<std::uint8_t>(least));
  return exponents > floor ? exponents : floor;
}

/// The largest codes so far, of each vector of columns `parts` vectors for four rows.
template <class Vector, int vectors, int row_groups, int parts = 1>
struct LargestCodes {
  ArrayOf<ArrayOf<Vector, row_groups * parts>, vectors> codes;

  /// Another's four of rows.
  template <int group, class Other>
  [[gnu::always_inline]] void take(const Other& other) {
    for (int v = 0; v < vectors; ++v)
      for (int i = group * parts; i < (group + 1) * parts; ++i) codes[v][i] = other.codes[v][i];
  }
  /// Of the fours of rows [first, last).
  template <int first = 0, int last = row_groups>
  [[gnu::always_inline]] void clear() {
#pragma GCC unroll 4
    for (auto& of_columns : codes) {
#pragma GCC unroll 4
      for (int i = first * parts; i < last * parts; ++i) of_columns[i] = Vector{};
    }
  }
};

/// By bytes: 4 rows in 32 bits, a column in each.
template <class Isa, int Rows, int Columns>
struct ByteMaximum
    : LargestCodes<typename Isa::Bytes, 4 * Columns / Isa::bytes, Rows / rows_together> {
  using Bytes = typename Isa::Bytes;
  static constexpr std::ptrdiff_t a_step = Rows, b_step = 4 * Columns;
  static constexpr int vectors = 4 * Columns / Isa::bytes, row_groups = Rows / rows_together;

  /// Of the fours of rows [first, last).
  template <int first = 0, int last = row_groups>
  [[gnu::always_inline]] void include(const std::byte* a, const std::byte* b) {
    ArrayOf<Bytes, row_groups> rows;
#pragma GCC unroll 2
    for (int i = first; i < last; ++i)
      rows[i] = broadcast<Bytes, std::uint32_t>(a + rows_together * i);
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) {
      const Bytes columns = formats::vectors::load<Bytes>(b + Isa::bytes * v);
#pragma GCC unroll 2
      for (int i = first; i < last; ++i) {
        const Bytes sum = rows[i] + columns;
        Bytes& most = this->codes[v][i];
        most = sum > most ? sum : most;
      }
    }
  }
};

}  // namespace guardbit::emulator::fused
