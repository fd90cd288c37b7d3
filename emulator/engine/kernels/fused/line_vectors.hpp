#pragma once

// Vectors of what stands in neighbouring lines of an operand, and a band's lines taken apart.
// Included where the instruction set is allowed.

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "emulator/engine/kernels/fused/panel_layout.hpp"
#include "formats/support/vectors/vector.hpp"

namespace guardbit::emulator::fused {

using formats::vectors::as;
using formats::vectors::broadcast;
using formats::vectors::fill;
using formats::vectors::half_of;
using formats::vectors::load;
using formats::vectors::store;

/// A vector holds so many of a band's lines, as words.
template <class Isa>
struct LineVectors {
  using Words = typename Isa::Words;
  using Floats = typename Isa::Floats;
  using Integers = typename Isa::template Of<std::int32_t>;
  static constexpr int lanes = Isa::bytes / 4, parts = band_lines / lanes;
};

/// A word of every line of a band.
struct alignas(64) LineWords {
  std::array<std::uint32_t, band_lines> of;
};

template <class Isa>
[[gnu::always_inline]] inline typename Isa::Words words_of(const LineWords& x, int part) {
  return load<typename Isa::Words>(x.of.data() + part * LineVectors<Isa>::lanes);
}

/// Transposes as many vectors as each has words.
template <class Isa>
[[gnu::always_inline]] inline void transpose(typename Isa::Words* x) {
  using Words = typename Isa::Words;
  constexpr int lanes = LineVectors<Isa>::lanes;
  const auto exchange = [x]<int distance, int... lane>(std::integer_sequence<int, distance>,
                                                       std::integer_sequence<int, lane...>)
      __attribute__((always_inline)) {
#pragma GCC unroll 16
    for (int i = 0; i < lanes; ++i) {
      if ((i & distance) != 0) continue;
      const Words p = x[i], q = x[i + distance];
      x[i] = __builtin_shufflevector(p, q,
                                     ((lane & distance) == 0 ? lane : lanes + lane - distance)...);
      x[i + distance] = __builtin_shufflevector(
          p, q, ((lane & distance) == 0 ? lane + distance : lanes + lane)...);
    }
  };
  constexpr std::make_integer_sequence<int, lanes> all;
  if constexpr (lanes == 16) exchange(std::integer_sequence<int, 8>(), all);
  if constexpr (lanes >= 8) exchange(std::integer_sequence<int, 4>(), all);
  exchange(std::integer_sequence<int, 2>(), all);
  exchange(std::integer_sequence<int, 1>(), all);
}

/// Neighbouring containers as words.
template <class Isa>
[[gnu::always_inline]] inline typename Isa::Words load_codes(const std::byte* from,
                                                             int container_bytes) {
  using Shorts = typename formats::vectors::Vectors<Isa::bytes / 2>::Shorts;
  using Bytes = typename formats::vectors::Vectors<Isa::bytes / 4>::Bytes;
  if (container_bytes == 1) return Isa::words(load<Bytes>(from));
  if (container_bytes == 2) return Isa::words(load<Shorts>(from));
  return load<typename Isa::Words>(from);
}

}  // namespace guardbit::emulator::fused
