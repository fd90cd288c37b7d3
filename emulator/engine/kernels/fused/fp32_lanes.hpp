#pragma once

// The operations of fused_tile.hpp in FP32's lanes of AVX-512 (F, BW, DQ, VL, BITALG, VPOPCNTDQ,
// VBMI). Included behind `#pragma GCC target`.

#include <immintrin.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

#include "emulator/engine/kernels/fused/avx512_bytes.hpp"
#include "emulator/engine/kernels/fused/fused_tile.hpp"

namespace guardbit::emulator::fused::avx512 {

/// FP32's lanes, for narrow factors and few kept bits: every exponent is calm.
struct Fp32Lanes {
  using Value = float;
  using Vector = __m512;
  using Bits = __m512i;
  static constexpr int width = 16, vectors = 2, columns = width * vectors;
  static constexpr int sign_group = 32;
  static constexpr std::ptrdiff_t a_step = 4 * tile_rows, b_step = 4 * columns;
  static constexpr std::ptrdiff_t a_sign_step = 8 * tile_rows, b_sign_step = 2 * 64 * vectors;

  static constexpr int bias = 127, fraction_bits = 23;
  static constexpr bool wide_exponents = false, lags = false;
  static constexpr int strip = 64, part_places = 512;

  template <Result Kind, bool Wide>
  struct Constants {
    static constexpr bool needs_addend_floor = Kind == Result::fp16;
    __m512i offset_bits, exponent_field, half, largest_offset, addend_bits;
    __m512 least_addend, nudged_one;
    int least_code;
    explicit Constants(const TileRule& rule)
        : offset_bits(
              _mm512_set1_epi32(((fraction_bits - rule.kept_fraction_bits) << fraction_bits) +
                                (1 << (fraction_bits - 1)))),
          exponent_field(_mm512_set1_epi32(0xFF << fraction_bits)),
          half(_mm512_set1_epi32(1 << (fraction_bits - 1))),
          largest_offset(_mm512_set1_epi32(0x7F7FFFFF)),
          addend_bits(_mm512_set1_epi32(-(1 << (fraction_bits - 13)))),
          least_addend(_mm512_set1_ps(0x1p-14F)),
          nudged_one(_mm512_set1_ps(1 + 0x1p-23F)),
          least_code(Kind == Result::fp16 ? rule.zero_exponent + 127 : 0) {}
  };

  /// Exponents + 127 of products, 4 rows in 32 bits.
  struct Exponents {
    __m512i bytes[vectors][2];

    /// The sign and the fraction are other rows' bits; neither matters to `offset`.
    template <class C>
    [[gnu::always_inline]] __m512 of(const C&, int v, int r) const {
      const __m512i of_rows = bytes[v][r / 4];
      return _mm512_castsi512_ps(r % 4 == 3 ? _mm512_srli_epi32(of_rows, 1)
                                            : _mm512_slli_epi32(of_rows, 23 - 8 * unsigned(r % 4)));
    }
  };
  template <bool Wide>
  struct Maximum : ByteMaximum<vectors> {
    template <class C>
    [[gnu::always_inline]] Exponents finish(const C& x, const std::array<int, 4>& lowest) const {
      Exponents result;
#pragma GCC unroll 2
      for (int v = 0; v < vectors; ++v) {
#pragma GCC unroll 2
        for (int i = 0; i < 2; ++i)
          result.bytes[v][i] =
              rebased(this->codes[v][i], lowest[static_cast<std::size_t>(v)], x.least_code);
      }
      return result;
    }
  };

  [[gnu::always_inline]] static Vector zero() { return _mm512_setzero_ps(); }
  [[gnu::always_inline]] static Vector load(const std::byte* from, int v) {
    return _mm512_loadu_ps(from + 64 * v);
  }
  [[gnu::always_inline]] static Vector broadcast(const std::byte* from, int r) {
    float x = 0;
    std::memcpy(&x, from + 4 * r, sizeof x);
    return _mm512_set1_ps(x);
  }
  [[gnu::always_inline]] static Vector multiply_add(Vector a, Vector b, Vector sum) {
    return _mm512_fmadd_round_ps(a, b, sum, down);
  }

  /// The signs of a row and of 16 columns; they are counted in `low_bits`.
  struct Counts {
    const std::byte *a, *b;
    int v;
  };
  template <int Groups>
  [[gnu::always_inline]] static Counts negative_products(const std::byte* a, const std::byte* b,
                                                         int, int v) {
    return {a, b, v};
  }
  template <int Groups, class C>
  [[gnu::always_inline]] static __m512i low_bits(const C& constants, const Counts& x, int r) {
    __m512i bits = constants.offset_bits;
#pragma GCC unroll 4
    for (int g = 0; g < Groups; ++g) {
      const std::byte* const a_group = x.a + g * a_sign_step + 4 * r;
      const __m512i b_negative = load_bytes(x.b + g * b_sign_step + 64 * x.v);
      const __m512i b_positive = load_bytes(x.b + g * b_sign_step + 64 * (vectors + x.v));
      const __m512i mixed = _mm512_and_si512(broadcast_32(a_group), b_positive);
      const __m512i negative = _mm512_ternarylogic_epi32(
          mixed, broadcast_32(a_group + 4 * tile_rows), b_negative, either_pair);
      bits = _mm512_add_epi32(bits, _mm512_popcnt_epi32(negative));
    }
    return bits;
  }

  template <class C>
  [[gnu::always_inline]] static Vector start(const C& x, Vector products, __m512i low_bits,
                                             Vector addend) {
    __m512 largest = _mm512_range_ps(products, addend, larger_magnitude);
    if constexpr (C::needs_addend_floor) {
      const __mmask16 nonzero = _mm512_cmp_ps_mask(addend, zero(), _CMP_NEQ_UQ);
      largest = _mm512_mask_max_ps(largest, nonzero, largest, x.least_addend);
    }
    const __m512i sign = _mm512_srli_epi32(_mm512_castps_si512(addend), 31);
    const __m512i exponent =
        _mm512_ternarylogic_epi32(_mm512_castps_si512(largest), x.exponent_field, sign, and_or);
    return _mm512_fmadd_round_ps(addend, x.nudged_one,
                                 _mm512_castsi512_ps(_mm512_add_epi32(exponent, low_bits)), down);
  }
  /// The accumulator less X, which has its exponent. X stays finite beside infinities.
  template <class C>
  [[gnu::always_inline]] static Vector exact(const C& x, Vector accumulator) {
    const __m512i offset = _mm512_ternarylogic_epi32(_mm512_castps_si512(accumulator),
                                                     x.exponent_field, x.half, and_or);
    return _mm512_sub_ps(accumulator,
                         _mm512_castsi512_ps(_mm512_min_epu32(offset, x.largest_offset)));
  }
  template <Result Kind, bool Wide, class C>
  [[gnu::always_inline]] static Vector round(const C& x, Vector exact) {
    if constexpr (Kind == Result::fp16) {
      const __m256i rounded = _mm512_cvtps_ph(exact, _MM_FROUND_TO_NEAREST_INT);
      return _mm512_add_ps(_mm512_cvtph_ps(rounded), zero());  // -0 becomes +0
    }
    return _mm512_castsi512_ps(_mm512_and_si512(_mm512_castps_si512(exact), x.addend_bits));
  }

  /// An addend of 2^60 or more leaves no bit of any product, and is D by itself; only "wide" tiles
  /// look for it.
  [[gnu::always_inline]] static __mmask16 is_frozen(Vector c) {
    const __m512 magnitude = _mm512_abs_ps(c);
    return _mm512_mask_cmp_ps_mask(
        _mm512_cmp_ps_mask(magnitude, _mm512_set1_ps(largest_fp32_addend), _CMP_GE_OQ), magnitude,
        _mm512_set1_ps(std::numeric_limits<float>::infinity()), _CMP_LT_OQ);
  }
  template <Result Kind, bool Wide>
  [[gnu::always_inline]] static Vector load_addend(const std::byte* row, int v) {
    if (row == nullptr) return zero();
    if constexpr (Kind == Result::fp16) {
      return _mm512_add_ps(
          _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(row + 32 * v))),
          zero());
    }
    // The unit never sees more than F + 1 bits of an addend.
    const __m512 c = _mm512_loadu_ps(row + 64 * v);
    if constexpr (!Wide) return _mm512_add_ps(cut_addend(c), zero());
    const __mmask16 taken = static_cast<__mmask16>(~is_frozen(c));
    return _mm512_maskz_add_ps(taken, cut_addend(c), zero());
  }
  /// FP32's fraction beyond 13 bits cut off; NaNs stay NaNs.
  [[gnu::always_inline]] static Vector cut_addend(Vector c) {
    const __mmask16 number = _mm512_cmp_ps_mask(c, c, _CMP_ORD_Q);
    const __m512i kept = _mm512_set1_epi32(-(1 << (fraction_bits - 13)));
    return _mm512_castsi512_ps(
        _mm512_mask_and_epi32(_mm512_castps_si512(c), number, _mm512_castps_si512(c), kept));
  }
  template <Result Kind, bool Wide>
  [[gnu::always_inline]] static void store_result(std::byte* row, int v, Vector result,
                                                  const std::byte* c_row) {
    const __mmask16 nan = _mm512_cmp_ps_mask(result, result, _CMP_UNORD_Q);
    if constexpr (Kind == Result::fp16) {
      const __m256i codes = _mm256_mask_mov_epi16(
          _mm512_cvtps_ph(result, _MM_FROUND_TO_NEAREST_INT), nan, _mm256_set1_epi16(0x7FFF));
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(row + 32 * v), codes);
    } else {
      if (Wide && c_row != nullptr) {
        const __m512 c = _mm512_loadu_ps(c_row + 64 * v);
        const __mmask16 finite =
            _mm512_cmp_ps_mask(_mm512_abs_ps(result),
                               _mm512_set1_ps(std::numeric_limits<float>::infinity()), _CMP_LT_OQ);
        result = _mm512_mask_mov_ps(result, is_frozen(c) & finite, cut_addend(c));
      }
      _mm512_storeu_si512(row + 64 * v, _mm512_mask_mov_epi32(_mm512_castps_si512(result), nan,
                                                              _mm512_set1_epi32(0x7FFFFFFF)));
    }
  }
};

}  // namespace guardbit::emulator::fused::avx512
