#pragma once

// The operations of fused_tile.hpp in FP64's lanes of AVX-512 (F, BW, DQ, VL, BITALG, VPOPCNTDQ,
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

struct Fp64Lanes {
  using Value = double;
  using Vector = __m512d;
  using Bits = __m512i;
  static constexpr int width = 8, vectors = 2, columns = width * vectors;
  static constexpr int sign_group = 16;
  static constexpr std::ptrdiff_t a_step = 8 * tile_rows, b_step = 8 * columns;
  static constexpr std::ptrdiff_t a_sign_step = 4 * tile_rows, b_sign_step = 2 * 64 * vectors;

  /// Of exponents as they stand in sums.
  static constexpr int bias = 1023 + fp64_scale_exponent, fraction_bits = 52;
  static constexpr bool any_exponents = true, lags = true;
  /// Places of B's panel that stay in the first-level cache, and of A's rows in the second.
  static constexpr int strip = 256, part_places = 256;

  template <Result Kind, bool General>
  struct Constants {
    static constexpr bool needs_addend_floor = General || Kind == Result::fp16;
    __m512i offset_bits, exponent_field, low, zero_exponent;
    __m512d least_addend, nudged_one;
    int least_code;
    explicit Constants(const TileRule& rule)
        : offset_bits(_mm512_set1_epi64(
              (std::int64_t{fraction_bits - rule.kept_fraction_bits} << fraction_bits) +
              (std::int64_t{1} << (fraction_bits - 1)))),
          exponent_field(_mm512_set1_epi64(std::int64_t{0x5FF} << fraction_bits)),
          low(_mm512_set1_epi64(0xFFFF)),
          zero_exponent(
              _mm512_set1_epi16(static_cast<std::int16_t>((rule.zero_exponent + bias) << 4))),
          least_addend(_mm512_set1_pd((Kind == Result::fp16 ? 0x1p-14 : 0x1p-126) * scale<double>)),
          nudged_one(_mm512_set1_pd(nudge<double>)),
          least_code(Kind == Result::fp16 ? rule.zero_exponent + 127 : 0) {}
  };

  /// Exponents of products as the high 16 bits of FP64, 4 rows in 64 bits.
  struct Exponents {
    __m512i fields[vectors][2];

    template <class C>
    [[gnu::always_inline]] __m512d of(const C&, int v, int r) const {
      const __m512i of_rows = fields[v][r / 4];
      return _mm512_castsi512_pd(
          r % 4 == 3 ? of_rows
                     : _mm512_slli_epi64(of_rows, static_cast<unsigned>(48 - 16 * (r % 4))));
    }
  };
  template <bool General>
  struct Maximum : ByteMaximum<1> {
    template <class C>
    [[gnu::always_inline]] Exponents finish(const C& x, const std::array<int, 4>& lowest) const {
      Exponents result;
#pragma GCC unroll 2
      for (int i = 0; i < 2; ++i) {
        const __m512i exponents = rebased(this->codes[0][i], lowest[0], x.least_code);
        const __m256i halves[vectors] = {_mm512_castsi512_si256(exponents),
                                         _mm512_extracti64x4_epi64(exponents, 1)};
#pragma GCC unroll 2
        for (int v = 0; v < vectors; ++v)
          result.fields[v][i] =
              _mm512_add_epi16(_mm512_slli_epi16(_mm512_cvtepu8_epi16(halves[v]), 4),
                               _mm512_set1_epi16((bias - 127) << 4));
      }
      return result;
    }
  };

  [[gnu::always_inline]] static Vector zero() { return _mm512_setzero_pd(); }
  [[gnu::always_inline]] static Vector load(const std::byte* from, int v) {
    return _mm512_loadu_pd(from + 64 * v);
  }
  [[gnu::always_inline]] static Vector broadcast(const std::byte* from, int r) {
    double x = 0;
    std::memcpy(&x, from + 8 * r, sizeof x);
    return _mm512_set1_pd(x);
  }
  [[gnu::always_inline]] static Vector multiply_add(Vector a, Vector b, Vector sum) {
    return _mm512_fmadd_round_pd(a, b, sum, down);
  }

  /// Numbers of negative products, 16 bits for each of 4 rows.
  using Counts = __m512i;
  template <int Groups>
  [[gnu::always_inline]] static Counts negative_products(const std::byte* a, const std::byte* b,
                                                         int row, int v) {
    __m512i counts{};
#pragma GCC unroll 4
    for (int g = 0; g < Groups; ++g) {
      const std::byte* const a_group = a + g * a_sign_step + 2 * row;
      const __m512i b_negative = load_bytes(b + g * b_sign_step + 64 * v);
      const __m512i b_positive = load_bytes(b + g * b_sign_step + 64 * (vectors + v));
      const __m512i mixed = _mm512_and_si512(broadcast_64(a_group), b_positive);
      const __m512i more = _mm512_popcnt_epi16(_mm512_ternarylogic_epi64(
          mixed, broadcast_64(a_group + 2 * tile_rows), b_negative, either_pair));
      counts = g == 0 ? more : _mm512_add_epi16(counts, more);
    }
    return counts;
  }
  /// What X's exponent and the count of negative products add to E's exponent field.
  template <int Groups, class C>
  [[gnu::always_inline]] static __m512i low_bits(const C& x, const Counts& counts, int r) {
    return _mm512_ternarylogic_epi64(_mm512_srli_epi64(counts, static_cast<unsigned>(16 * (r % 4))),
                                     x.low, x.offset_bits, and_or);
  }

  template <class C>
  [[gnu::always_inline]] static Vector start(const C& x, Vector products, __m512i low_bits,
                                             Vector addend) {
    __m512d largest = _mm512_range_pd(products, addend, larger_magnitude);
    if constexpr (C::needs_addend_floor) {
      const __mmask8 nonzero = _mm512_cmp_pd_mask(addend, zero(), _CMP_NEQ_UQ);
      largest = _mm512_mask_max_pd(largest, nonzero, largest, x.least_addend);
    }
    const __m512i sign = _mm512_srli_epi64(_mm512_castpd_si512(addend), 63);
    const __m512i exponent =
        _mm512_ternarylogic_epi64(_mm512_castpd_si512(largest), x.exponent_field, sign, and_or);
    return _mm512_fmadd_round_pd(addend, x.nudged_one,
                                 _mm512_castsi512_pd(_mm512_add_epi64(exponent, low_bits)), down);
  }
  /// The accumulator less X, which has its exponent (claim 4).
  template <class C>
  [[gnu::always_inline]] static Vector exact(const C& x, Vector accumulator) {
    return _mm512_sub_pd(accumulator, _mm512_castsi512_pd(_mm512_ternarylogic_epi64(
                                          _mm512_castpd_si512(accumulator), x.exponent_field,
                                          x.offset_bits, select_by)));
  }

  /// Rounded to nearest even to FP16's grid; infinite from 2^16 on. +0 for zeros.
  template <class C>
  [[gnu::always_inline]] static Vector rounded_to_fp16(const C& x, Vector exact) {
    const __m512d largest = _mm512_range_pd(exact, x.least_addend, larger_magnitude);
    const __m512i shift = _mm512_set1_epi64(std::int64_t{fraction_bits - 10} << fraction_bits);
    const __m512i half = _mm512_set1_epi64(std::int64_t{1} << (fraction_bits - 1));
    const __m512d magic = _mm512_castsi512_pd(_mm512_ternarylogic_epi64(
        _mm512_add_epi64(_mm512_castpd_si512(largest), shift), x.exponent_field, half, and_or));
    const __m512d rounded = _mm512_sub_pd(_mm512_add_pd(exact, magic), magic);
    return infinite_from(rounded, rounded, 0x1p16);
  }
  [[gnu::always_inline]] static Vector infinite_from(Vector value, Vector compared, double limit) {
    const __m512i sign = _mm512_set1_epi64(std::numeric_limits<std::int64_t>::min());
    const __m512i infinity = _mm512_set1_epi64(std::int64_t{0x7FF} << fraction_bits);
    const __mmask8 over = _mm512_cmp_pd_mask(_mm512_abs_pd(compared),
                                             _mm512_set1_pd(limit * scale<double>), _CMP_GE_OQ);
    return _mm512_castsi512_pd(
        _mm512_mask_ternarylogic_epi64(_mm512_castpd_si512(value), over, sign, infinity, and_or));
  }
  template <Result Kind, bool General, class C>
  [[gnu::always_inline]] static Vector round(const C& x, Vector exact) {
    if constexpr (Kind == Result::fp16) {
      return rounded_to_fp16(x, exact);
    } else if constexpr (General) {
      const __m512d cut = _mm512_cvtps_pd(_mm512_cvt_roundpd_ps(unscaled(exact), to_zero));
      return infinite_from(scaled(cut), exact, 0x1p128);
    } else {
      const __m512i kept = _mm512_set1_epi64(-(std::int64_t{1} << (fraction_bits - 23)));
      return _mm512_castsi512_pd(_mm512_and_si512(_mm512_castpd_si512(exact), kept));
    }
  }
  /// The scalar addition of composed instructions. FP64 holds more than twice FP32's bits, so that
  /// rounding twice is rounding once.
  template <Result Kind, class C>
  [[gnu::always_inline]] static Vector add(const C& x, Vector a, Vector b) {
    const __m512d sum = _mm512_add_pd(a, b);
    if constexpr (Kind == Result::fp16) return rounded_to_fp16(x, sum);
    return scaled(_mm512_cvtps_pd(_mm512_cvtpd_ps(unscaled(sum))));
  }
  /// -0 becomes +0.
  [[gnu::always_inline]] static Vector scaled(Vector x) {
    return _mm512_fmadd_pd(x, _mm512_set1_pd(scale<double>), zero());
  }
  [[gnu::always_inline]] static Vector unscaled(Vector x) {
    return _mm512_mul_pd(x, _mm512_set1_pd(1 / scale<double>));
  }

  template <Result Kind, bool General>
  [[gnu::always_inline]] static Vector load_addend(const std::byte* row, int v) {
    if (row == nullptr) return zero();
    __m256 value;
    if constexpr (Kind == Result::fp16) {
      value = _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(row + 16 * v)));
    } else {
      value = _mm256_loadu_ps(reinterpret_cast<const float*>(row + 32 * v));
    }
    return scaled(_mm512_cvtps_pd(value));
  }
  template <Result Kind, bool General>
  [[gnu::always_inline]] static void store_result(std::byte* row, int v, Vector result,
                                                  const std::byte*) {
    const __m256 value = _mm512_cvtpd_ps(unscaled(result));
    const __mmask8 nan = _mm256_cmp_ps_mask(value, value, _CMP_UNORD_Q);
    if constexpr (Kind == Result::fp16) {
      const __m128i codes = _mm_mask_mov_epi16(_mm256_cvtps_ph(value, _MM_FROUND_TO_NEAREST_INT),
                                               nan, _mm_set1_epi16(0x7FFF));
      _mm_storeu_si128(reinterpret_cast<__m128i*>(row + 16 * v), codes);
    } else {
      const __m256i codes =
          _mm256_mask_mov_epi32(_mm256_castps_si256(value), nan, _mm256_set1_epi32(0x7FFFFFFF));
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(row + 32 * v), codes);
    }
  }
};

/// Exponents of products in 16 bits, which hold any.
template <>
struct Fp64Lanes::Maximum<true> {
  static constexpr std::ptrdiff_t a_step = 2 * tile_rows, b_step = 64 * vectors;
  __m512i codes[vectors][2];

  [[gnu::always_inline]] void clear() {
    for (auto& of_vector : codes) of_vector[0] = of_vector[1] = _mm512_setzero_si512();
  }
  [[gnu::always_inline]] void include(const std::byte* a, const std::byte* b) {
#pragma GCC unroll 2
    for (int v = 0; v < vectors; ++v) {
      const __m512i columns_of_vector = load_bytes(b + 64 * v);
#pragma GCC unroll 2
      for (int i = 0; i < 2; ++i)
        codes[v][i] = _mm512_max_epu16(
            codes[v][i], _mm512_add_epi16(broadcast_64(a + 8 * i), columns_of_vector));
    }
  }
  template <class C>
  [[gnu::always_inline]] Exponents finish(const C& x, const std::array<int, 4>&) const {
    Exponents result;
#pragma GCC unroll 2
    for (int v = 0; v < vectors; ++v) {
#pragma GCC unroll 2
      for (int i = 0; i < 2; ++i)
        result.fields[v][i] = _mm512_max_epu16(
            _mm512_add_epi16(codes[v][i], _mm512_set1_epi16((bias - 1024) << 4)), x.zero_exponent);
    }
    return result;
  }
};

}  // namespace guardbit::emulator::fused::avx512
