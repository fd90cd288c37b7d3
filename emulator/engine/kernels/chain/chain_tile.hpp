#pragma once

// Tiles of chains of fused multiply-adds in the vectors of an instruction set. Included where that
// is allowed.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

#include "emulator/engine/kernels/chain/chain_tiles.hpp"
#include "formats/support/vectors/vector.hpp"

namespace guardbit::emulator::chains {

/// Of registers of 512 bits there are 32 and 24 hold sums, of 256 bits 16 and 12; NEON's are as
/// wide together as the latter.
template <class Isa, class Vector>
struct TileShape {
  static constexpr int rows = Isa::bytes == 64 ? 8 : 4;
  static constexpr int vectors = (Isa::bytes == 64 ? 192 : 96) / Isa::bytes;
  static constexpr int columns = vectors * formats::vectors::lanes<Vector>;
};

/// A sum that is a NaN stays as it is. An invalid operation gives x86's NaN.
template <class Isa, class Vector>
[[gnu::always_inline]] inline Vector fma_unless_nan(const Vector& a, const Vector& b,
                                                    const Vector& c) {
  Vector sum = Isa::fma(a, b, c);
  if constexpr (!Isa::nans_as_x86) {
    constexpr auto nan = -std::numeric_limits<formats::vectors::LaneOf<Vector>>::quiet_NaN();
    const auto is_invalid = (sum != sum) & (a == a) & (b == b);
    sum = is_invalid ? formats::vectors::fill<Vector>(nan) : sum;
  }
  return c == c ? sum : c;
}

template <class Isa, class Vector, bool keeps_nan>
void chain(const std::byte* a, const std::byte* b, std::int64_t length, const std::byte* from,
           std::int64_t from_stride, std::byte* to, std::int64_t to_stride) {
  using formats::vectors::load;
  using Element = formats::vectors::LaneOf<Vector>;
  using Shape = TileShape<Isa, Vector>;
  constexpr std::int64_t bytes = sizeof(Vector), element = sizeof(Element);
  const std::byte *row_at = a, *columns_at = b;
  formats::vectors::ArrayOf<formats::vectors::ArrayOf<Vector, Shape::vectors>, Shape::rows> sums;
#pragma GCC unroll 16
  for (int r = 0; r < Shape::rows; ++r) {
#pragma GCC unroll 6
    for (int v = 0; v < Shape::vectors; ++v) {
      Vector& sum = sums[r][v];
      sum = from == nullptr ? Vector{} : load<Vector>(from + r * from_stride + v * bytes);
      if constexpr (keeps_nan) sum = sum == sum ? sum : sum + sum;  // quiet
    }
  }
  for (std::int64_t k = 0; k < length; ++k) {
    formats::vectors::ArrayOf<Vector, Shape::vectors> columns;
#pragma GCC unroll 6
    for (int v = 0; v < Shape::vectors; ++v) columns[v] = load<Vector>(columns_at + v * bytes);
#pragma GCC unroll 16
    for (int r = 0; r < Shape::rows; ++r) {
      Element x = 0;
      std::memcpy(&x, row_at + r * element, sizeof x);
      const Vector row = Isa::all(x);
#pragma GCC unroll 6
      for (int v = 0; v < Shape::vectors; ++v) {
        Vector& sum = sums[r][v];
        sum =
            keeps_nan ? fma_unless_nan<Isa>(row, columns[v], sum) : Isa::fma(row, columns[v], sum);
      }
    }
    row_at += Shape::rows * element;
    columns_at += Shape::vectors * bytes;
  }
  if constexpr (!keeps_nan && !Isa::nans_as_x86) {
    auto nans = sums[0][0] != sums[0][0];
#pragma GCC unroll 16
    for (const auto& of_row : sums) {
#pragma GCC unroll 6
      for (const Vector& sum : of_row) nans |= sum != sum;
    }
    if (Isa::any(formats::vectors::as<typename Isa::Mask>(nans)))
      return chain<Isa, Vector, true>(a, b, length, from, from_stride, to, to_stride);
  }
#pragma GCC unroll 16
  for (int r = 0; r < Shape::rows; ++r) {
#pragma GCC unroll 6
    for (int v = 0; v < Shape::vectors; ++v)
      formats::vectors::store(to + r * to_stride + v * bytes, sums[r][v]);
  }
}

template <class Isa, class Vector>
inline constexpr ChainTiles tiles = {TileShape<Isa, Vector>::rows, TileShape<Isa, Vector>::columns,
                                     chain<Isa, Vector, false>, chain<Isa, Vector, true>};

}  // namespace guardbit::emulator::chains
