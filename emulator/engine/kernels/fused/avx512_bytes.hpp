#pragma once

// What the lanes of fused_tile.hpp share in AVX-512: bytes of exponents, and names of immediates.
// Included behind `#pragma GCC target`.

#include <immintrin.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "emulator/engine/kernels/fused/fused_panels.hpp"

namespace guardbit::emulator::fused::avx512 {

constexpr int down = _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC;
constexpr int to_zero = _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC;
constexpr int larger_magnitude = 0b1011;  // VRANGE: the larger |x|, without sign
constexpr int and_or = 0xEA;              // (x & y) | z
constexpr int select_by = 0xE2;           // y ? x : z
constexpr int either_pair = 0xF8;         // x | (y & z)

[[gnu::always_inline]] inline __m512i load_bytes(const std::byte* from) {
  return _mm512_loadu_si512(from);
}

[[gnu::always_inline]] inline __m512i broadcast_32(const std::byte* from) {
  std::int32_t x = 0;
  std::memcpy(&x, from, sizeof x);
  return _mm512_set1_epi32(x);
}
[[gnu::always_inline]] inline __m512i broadcast_64(const std::byte* from) {
  std::int64_t x = 0;
  std::memcpy(&x, from, sizeof x);
  return _mm512_set1_epi64(x);
}

/// Codes of sums to exponents + 127, at least `least`; 0 where every product is zero.
[[gnu::always_inline]] inline __m512i rebased(__m512i codes, int lowest, int least) {
  const __m512i change = _mm512_set1_epi8(static_cast<char>(lowest + 127 - 128));
  const __m512i exponents = _mm512_maskz_add_epi8(_mm512_movepi8_mask(codes), codes, change);
  return _mm512_max_epu8(exponents, _mm512_set1_epi8(static_cast<char>(least)));
}

/// The largest codes so far by bytes: 4 rows in 32 bits, 16 columns in a register.
template <int Groups>
struct ByteMaximum {
  static constexpr std::ptrdiff_t a_step = tile_rows, b_step = 64 * Groups;
  __m512i codes[static_cast<std::size_t>(Groups)][2];

  [[gnu::always_inline]] void clear() {
    for (auto& group : codes) group[0] = group[1] = _mm512_setzero_si512();
  }
  [[gnu::always_inline]] void include(const std::byte* a, const std::byte* b) {
    const __m512i rows[2] = {broadcast_32(a), broadcast_32(a + 4)};
#pragma GCC unroll 2
    for (int g = 0; g < Groups; ++g) {
      const __m512i columns = load_bytes(b + 64 * g);
#pragma GCC unroll 2
      for (int i = 0; i < 2; ++i)
        codes[g][i] = _mm512_max_epu8(codes[g][i], _mm512_add_epi8(rows[i], columns));
    }
  }
};

}  // namespace guardbit::emulator::fused::avx512
