#pragma once

// Tiles of integer sums in the vectors of an instruction set. Included where that is allowed.
// Dots: the set, as Isa; `add`, which adds the products of a group of k's (4 bytes or 2 words of a
// line) in each word; `ones`, a group of them in each.

#include <cstddef>
#include <cstdint>

#include "emulator/engine/kernels/integer/integer_tiles.hpp"
#include "formats/support/vectors/vector.hpp"

namespace guardbit::emulator::integers {

using formats::vectors::ArrayOf;
using formats::vectors::broadcast;
using formats::vectors::load;
using formats::vectors::store;

/// As that of chains of multiply-adds (chain_tile.hpp).
template <class Dots>
struct TileShape {
  using Words = typename Dots::Isa::Words;
  static constexpr std::int64_t bytes = Dots::Isa::bytes;
  static constexpr int rows = bytes == 64 ? 8 : 4;
  static constexpr int vectors = (bytes == 64 ? 192 : 96) / bytes, columns = vectors * bytes / 4;
};

/// Adds all groups to the tile, and what its lines lack.
template <class Dots>
void add_products(const IntegerPanels& x, const std::byte* from, std::int64_t from_stride,
                  std::byte* to, std::int64_t to_stride) {
  using Shape = TileShape<Dots>;
  using Words = typename Shape::Words;
  constexpr std::int64_t bytes = Shape::bytes;
  ArrayOf<ArrayOf<Words, Shape::vectors>, Shape::rows> sums;
#pragma GCC unroll 16
  for (int r = 0; r < Shape::rows; ++r) {
#pragma GCC unroll 6
    for (int v = 0; v < Shape::vectors; ++v) {
      sums[r][v] =
          broadcast<Words, std::uint32_t>(x.a_lacks + r * 4) + load<Words>(x.b_lacks + v * bytes);
      if (from != nullptr) sums[r][v] += load<Words>(from + r * from_stride + v * bytes);
    }
  }
  const std::byte* a = x.a;
  const std::byte* b = x.b;
  for (std::int64_t g = 0; g < x.groups; ++g) {
    ArrayOf<Words, Shape::vectors> columns;
#pragma GCC unroll 6
    for (int v = 0; v < Shape::vectors; ++v) columns[v] = load<Words>(b + v * bytes);
#pragma GCC unroll 16
    for (int r = 0; r < Shape::rows; ++r) {
      const auto row = broadcast<Words, std::uint32_t>(a + r * 4);
#pragma GCC unroll 6
      for (int v = 0; v < Shape::vectors; ++v) sums[r][v] = Dots::add(sums[r][v], row, columns[v]);
    }
    a += Shape::rows * 4;
    b += Shape::vectors * bytes;
  }
#pragma GCC unroll 16
  for (int r = 0; r < Shape::rows; ++r) {
#pragma GCC unroll 6
    for (int v = 0; v < Shape::vectors; ++v) store(to + r * to_stride + v * bytes, sums[r][v]);
  }
}

/// Where the signs of both differ from the sum's, the sum left the range on the side of x.
template <class Isa>
[[gnu::always_inline]] inline typename Isa::Words saturated_sum(const typename Isa::Words& x,
                                                                const typename Isa::Words& y) {
  using Words = typename Isa::Words;
  using Integers = typename Isa::template Of<std::int32_t>;
  using formats::vectors::as;
  const Words sum = x + y;
  const Words limit = as<Words>(as<Integers>(x) >> 31) ^ 0x7FFFFFFFU;
  return as<Integers>((x ^ sum) & (y ^ sum)) < 0 ? limit : sum;
}

/// The same with a saturation after every `x.chunk_groups` groups: an execution's own sum fits 32
/// bits, so that one saturating addition is what the instruction does. Two rows of D at a time,
/// since few tiles need it.
template <class Dots>
void add_products_saturating(const IntegerPanels& x, const std::byte* from,
                             std::int64_t from_stride, std::byte* to, std::int64_t to_stride) {
  using Shape = TileShape<Dots>;
  using Words = typename Shape::Words;
  constexpr std::int64_t bytes = Shape::bytes;
  constexpr int rows_at_once = 2;
  using Rows = ArrayOf<ArrayOf<Words, Shape::vectors>, rows_at_once>;
  const std::int64_t chunks = x.groups / x.chunk_groups;
  for (int first = 0; first < Shape::rows; first += rows_at_once) {
    Rows totals;
    for (int r = 0; r < rows_at_once; ++r) {
      for (int v = 0; v < Shape::vectors; ++v)
        totals[r][v] =
            from == nullptr ? Words{} : load<Words>(from + (first + r) * from_stride + v * bytes);
    }
    const std::byte* a = x.a + first * 4;
    const std::byte* b = x.b;
    for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
      Rows sums;
      for (int r = 0; r < rows_at_once; ++r) {
        for (int v = 0; v < Shape::vectors; ++v)
          sums[r][v] = broadcast<Words, std::uint32_t>(x.a_chunk_lacks +
                                                       (chunk * Shape::rows + first + r) * 4) +
                       load<Words>(x.b_chunk_lacks + (chunk * Shape::vectors + v) * bytes);
      }
      for (std::int64_t g = 0; g < x.chunk_groups; ++g) {
        for (int r = 0; r < rows_at_once; ++r) {
          const auto row = broadcast<Words, std::uint32_t>(a + r * 4);
          for (int v = 0; v < Shape::vectors; ++v)
            sums[r][v] = Dots::add(sums[r][v], row, load<Words>(b + v * bytes));
        }
        a += Shape::rows * 4;
        b += Shape::vectors * bytes;
      }
      for (int r = 0; r < rows_at_once; ++r) {
        for (int v = 0; v < Shape::vectors; ++v)
          totals[r][v] = saturated_sum<typename Dots::Isa>(totals[r][v], sums[r][v]);
      }
    }
    for (int r = 0; r < rows_at_once; ++r) {
      for (int v = 0; v < Shape::vectors; ++v)
        store(to + (first + r) * to_stride + v * bytes, totals[r][v]);
    }
  }
}

/// Adds the signed elements of `count` groups of every column to `sums`.
template <class Dots>
void add_up(const std::byte* groups, std::int64_t count, std::int32_t* sums) {
  using Shape = TileShape<Dots>;
  using Words = typename Shape::Words;
  constexpr std::int64_t bytes = Shape::bytes;
  auto* const to = reinterpret_cast<std::byte*>(sums);
  ArrayOf<Words, Shape::vectors> totals;
  for (int v = 0; v < Shape::vectors; ++v) totals[v] = load<Words>(to + v * bytes);
  for (std::int64_t g = 0; g < count; ++g) {
    for (int v = 0; v < Shape::vectors; ++v)
      totals[v] = Dots::add(totals[v], Dots::ones(),
                            load<Words>(groups + (g * Shape::vectors + v) * bytes));
  }
  for (int v = 0; v < Shape::vectors; ++v) store(to + v * bytes, totals[v]);
}

/// `ADots` where A's bytes are the unsigned ones, `BDots` where B's are.
template <Factors factors, class ADots, class BDots = ADots>
inline constexpr IntegerTiles tiles = {
    TileShape<ADots>::rows,
    TileShape<ADots>::columns,
    factors,
    {add_products<ADots>, add_products<BDots>},
    {add_products_saturating<ADots>, add_products_saturating<BDots>},
    add_up<ADots>};

/// Words: two k's of a line, of products of at most 2^16, two of which do not overflow.
template <class Set>
struct WordDots {
  using Isa = Set;
  using Words = typename Isa::Words;
  using Shorts = typename Isa::Shorts;
  static Words ones() { return formats::vectors::fill<Words>(0x00010001); }
  [[gnu::always_inline]] static Words add(const Words& sums, const Words& a, const Words& b) {
    using formats::vectors::as;
    return sums + Isa::pair_products(as<Shorts>(a), as<Shorts>(b));
  }
};

}  // namespace guardbit::emulator::integers
