#pragma once

#include <immintrin.h>

#include <cstdint>

#include "formats/support/vectors/vector.hpp"

namespace guardbit::formats::vectors {

/// AVX-512 (F, BW, DQ, VL, VBMI, VBMI2, BITALG, VPOPCNTDQ, VNNI). Include it where the target
/// allows that.
struct Avx512 : Vectors<64> {
  /// Instructions name their direction of rounding; elsewhere the thread's counts for all.
  static constexpr bool names_rounding = true;
  /// Of operands' NaNs and invalid operations, the CPU makes what x86 makes.
  static constexpr bool nans_as_x86 = true;

  /// a * b + c rounded down.
  static Doubles fma_down(Doubles a, Doubles b, Doubles c) {
    return _mm512_fmadd_round_pd(a, b, c, down);
  }
  static Floats fma_down(Floats a, Floats b, Floats c) {
    return _mm512_fmadd_round_ps(a, b, c, down);
  }
  /// A number in memory that multiply-adds take in every lane. As an operand in memory it costs Zen
  /// 4 nothing; brought to a register, an instruction on the ports that multiply and add. The
  /// compiler would bring it, which is why these are assembly; they round as the thread does, down
  /// for results above zero.
  template <class Number>
  struct Factor {
    const Number* at;
  };
  template <class Number>
  static Factor<Number> factor(const std::byte* at) {
    return {static_cast<const Number*>(static_cast<const void*>(at))};
  }
  static Doubles fma_down(const Factor<double>& a, Doubles b, Doubles c) {
    asm("vfmadd231pd %2%{1to8%}, %1, %0" : "+v"(c) : "v"(b), "m"(*a.at));
    return c;
  }
  static Floats fma_down(const Factor<float>& a, Floats b, Floats c) {
    asm("vfmadd231ps %2%{1to16%}, %1, %0" : "+v"(c) : "v"(b), "m"(*a.at));
    return c;
  }
  static Doubles fma(Doubles a, Doubles b, Doubles c) { return _mm512_fmadd_pd(a, b, c); }
  static Floats fma(Floats a, Floats b, Floats c) { return _mm512_fmadd_ps(a, b, c); }

  static Doubles all(double x) { return _mm512_set1_pd(x); }
  static Floats all(float x) { return _mm512_set1_ps(x); }

  // GCC 12 takes conversions apart that change the size of lanes.
  static Words words(Vectors<32>::Shorts x) {
    return as<Words>(_mm512_cvtepu16_epi32(as<__m256i>(x)));
  }
  static Words words(Vectors<16>::Bytes x) {
    return as<Words>(_mm512_cvtepu8_epi32(as<__m128i>(x)));
  }
  static Doubles doubles(Vectors<32>::Floats x) { return _mm512_cvtps_pd(x); }
  /// Rounded as the thread says.
  static Vectors<32>::Floats floats(Doubles x) { return _mm512_cvtpd_ps(x); }

  /// y where one is a NaN. GCC 12 makes a comparison and a selection of it.
  static Doubles larger(Doubles x, Doubles y) { return _mm512_max_pd(x, y); }
  static Floats larger(Floats x, Floats y) { return _mm512_max_ps(x, y); }
  /// The larger of two magnitudes, without a sign; of a number and a NaN the number.
  static Doubles larger_magnitude(Doubles x, Doubles y) { return _mm512_range_pd(x, y, 0b1011); }
  static Floats larger_magnitude(Floats x, Floats y) { return _mm512_range_ps(x, y, 0b1011); }

  /// (x & y) | z
  template <class Vector>
  static Vector and_or(Vector x, Vector y, Vector z) {
    return as<Vector>(
        _mm512_ternarylogic_epi64(as<__m512i>(x), as<__m512i>(y), as<__m512i>(z), 0xEA));
  }

  /// x | (y & z)
  template <class Vector>
  static Vector or_and(Vector x, Vector y, Vector z) {
    return as<Vector>(
        _mm512_ternarylogic_epi64(as<__m512i>(x), as<__m512i>(y), as<__m512i>(z), 0xF8));
  }
  /// x where the mask's bits are set, else y.
  static Longs select_bits(Longs mask, Longs x, Longs y) {
    return as<Longs>(
        _mm512_ternarylogic_epi64(as<__m512i>(x), as<__m512i>(mask), as<__m512i>(y), 0xE2));
  }
  /// x, or where |y| is `limit` or more `magnitude` with x's sign.
  static Doubles replaced(Doubles x, Doubles y, Doubles limit, Doubles magnitude) {
    const __mmask8 over = _mm512_cmp_pd_mask(_mm512_abs_pd(y), limit, _CMP_GE_OQ);
    return as<Doubles>(_mm512_mask_ternarylogic_epi64(
        as<__m512i>(x), over, as<__m512i>(fill<Doubles>(-0.0)), as<__m512i>(magnitude), 0xEA));
  }

  /// x less 1.5 * 2^p, p the exponent that the mask takes of x.
  static Doubles less_offset(Doubles x, Longs mask) {
    return x - as<Doubles>(select_bits(mask, as<Longs>(x), fill<Longs>(std::uint64_t{1} << 51)));
  }

  /// x and byte n of every word of y. VNNI.
  static Words plus_byte(Words x, Bytes y, int n) {
    return as<Words>(_mm512_dpbusd_epi32(as<__m512i>(x), as<__m512i>(y),
                                         _mm512_set1_epi32(static_cast<int>(1U << (8 * n)))));
  }
  /// x shifted right under the lowest bits of `above`. VBMI2.
  template <int bits>
  static Words shifted_below(Words x, std::uint32_t above) {
    return as<Words>(_mm512_shrdi_epi32(as<__m512i>(x), as<__m512i>(fill<Words>(above)), bits));
  }

  /// Bits that are set in each lane.
  static Bytes bit_counts(Bytes x) { return as<Bytes>(_mm512_popcnt_epi8(as<__m512i>(x))); }
  static Bytes bit_counts_of_nibbles(Bytes x) { return bit_counts(x); }
  static Shorts bit_counts(Shorts x) { return as<Shorts>(_mm512_popcnt_epi16(as<__m512i>(x))); }
  static Words bit_counts(Words x) { return as<Words>(_mm512_popcnt_epi32(as<__m512i>(x))); }

  static Vectors<32>::Floats floats_toward_zero(Doubles x) {
    return _mm512_cvt_roundpd_ps(x, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
  }
  /// Codes of FP16, rounded to nearest even.
  static Vectors<32>::Shorts fp16_codes(Floats x) {
    return as<Vectors<32>::Shorts>(_mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT));
  }
  static Vectors<16>::Shorts fp16_codes(Vectors<32>::Floats x) {
    return as<Vectors<16>::Shorts>(_mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT));
  }
  static Floats fp16_numbers(Vectors<32>::Shorts x) { return _mm512_cvtph_ps(as<__m256i>(x)); }
  static Vectors<32>::Floats fp16_numbers(Vectors<16>::Shorts x) {
    return _mm256_cvtph_ps(as<__m128i>(x));
  }
  /// Of FP16, the nearest, even of two.
  static Floats fp16_rounded(Floats x) { return fp16_numbers(fp16_codes(x)); }

  /// Sums of products of four neighbouring bytes, the first unsigned, as words: `begin` them, `add`
  /// to them, `end` them. VNNI.
  struct ByteDots {
    static Words begin(Words start) { return start; }
    static Words add(Words sums, Bytes x, Bytes y) {
      return as<Words>(_mm512_dpbusd_epi32(as<__m512i>(sums), as<__m512i>(x), as<__m512i>(y)));
    }
    static Words end(Words sums, Words /*start*/) { return sums; }
  };
  /// x less the third byte of y. VNNI.
  static Words less_third_byte(Words x, Words y) {
    return as<Words>(
        _mm512_dpbusd_epi32(as<__m512i>(x), as<__m512i>(y), _mm512_set1_epi32(0x00FF0000)));
  }
  /// The larger of x and y where `bits` are not zero, else x.
  static Words larger_where(Words bits, Words x, Words y) {
    const __mmask16 mask = _mm512_test_epi32_mask(as<__m512i>(bits), as<__m512i>(bits));
    return as<Words>(_mm512_mask_max_epu32(as<__m512i>(x), mask, as<__m512i>(x), as<__m512i>(y)));
  }
  /// The high words of even lanes' numbers, and of odd lanes', in turns.
  static Words high_words(Doubles even, Doubles odd) {
    return as<Words>(
        _mm512_mask_movehdup_ps(_mm512_castpd_ps(odd), 0x5555, _mm512_castpd_ps(even)));
  }

  /// One bit a lane. GCC 12 moves masks of the compiler's own to vectors and back.
  using Mask = __mmask16;
  static Mask at_least(Words x, Words y) {
    return _mm512_cmpge_epu32_mask(as<__m512i>(x), as<__m512i>(y));
  }
  static Mask equal(Words x, Words y) {
    return _mm512_cmpeq_epi32_mask(as<__m512i>(x), as<__m512i>(y));
  }
  static bool any(Mask x) { return x != 0; }
  static Words select(Mask mask, Words yes, Words no) {
    return as<Words>(_mm512_mask_mov_epi32(as<__m512i>(no), mask, as<__m512i>(yes)));
  }

  // Comparisons of numbers: none of them holds of a NaN.
  static Mask equal(Floats x, Floats y) { return _mm512_cmp_ps_mask(x, y, _CMP_EQ_OQ); }
  static Mask less(Floats x, Floats y) { return _mm512_cmp_ps_mask(x, y, _CMP_LT_OQ); }
  static Mask at_most(Floats x, Floats y) { return _mm512_cmp_ps_mask(x, y, _CMP_LE_OQ); }
  static Mask unlike(Mask x) { return static_cast<Mask>(~x); }
  /// Of signed words.
  static Mask less_signed(Words x, Words y) {
    return _mm512_cmplt_epi32_mask(as<__m512i>(x), as<__m512i>(y));
  }
  static bool all(Mask x) { return x == 0xFFFF; }
  /// One bit a lane.
  static std::uint32_t bits_of(Mask x) { return x; }

  static Floats square_root(Floats x) { return _mm512_sqrt_ps(x); }
  static Doubles to_nearest_integer(Doubles x) {
    return _mm512_roundscale_pd(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  }
  static Floats to_nearest_integer(Floats x) {
    return _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  }
  static Floats to_integer_toward_zero(Floats x) {
    return _mm512_roundscale_ps(x, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
  }
  static Floats of_signed(Words x) { return _mm512_cvtepi32_ps(as<__m512i>(x)); }
  static Floats of_signed_toward_zero(Words x) {
    return _mm512_cvt_roundepi32_ps(as<__m512i>(x), toward_zero);
  }
  /// Toward zero; 2^31 where there is no such integer.
  static Words to_signed(Floats x) { return as<Words>(_mm512_cvttps_epi32(x)); }

  static Floats fma_toward_zero(Floats a, Floats b, Floats c) {
    return _mm512_fmadd_round_ps(a, b, c, toward_zero);
  }
  static Floats add_toward_zero(Floats a, Floats b) {
    return _mm512_add_round_ps(a, b, toward_zero);
  }
  static Floats multiply_toward_zero(Floats a, Floats b) {
    return _mm512_mul_round_ps(a, b, toward_zero);
  }
  static Floats divide_toward_zero(Floats a, Floats b) {
    return _mm512_div_round_ps(a, b, toward_zero);
  }
  static Floats divide_down(Floats a, Floats b) { return _mm512_div_round_ps(a, b, down); }
  static Floats divide_up(Floats a, Floats b) { return _mm512_div_round_ps(a, b, up); }
  static Floats square_root_down(Floats x) { return _mm512_sqrt_round_ps(x, down); }
  static Floats square_root_up(Floats x) { return _mm512_sqrt_round_ps(x, up); }

  /// The CPU's own approximations, closer than 2^-11; which ones differs from CPU to CPU.
  static Floats near_reciprocals(Floats x) { return _mm512_rcp14_ps(x); }
  static Floats near_reciprocal_roots(Floats x) { return _mm512_rsqrt14_ps(x); }

  /// The upper halves of products of 16-bit lanes.
  static Words high_halves_of_products(Words x, Words y) {
    return as<Words>(_mm512_mulhi_epu16(as<__m512i>(x), as<__m512i>(y)));
  }
  /// Sums of the two products of signed 16-bit lanes in each word.
  static Words sums_of_products(Words x, Words y) {
    return as<Words>(_mm512_madd_epi16(as<__m512i>(x), as<__m512i>(y)));
  }
  static Words low_words_of_products(Words x, Words y) {
    return as<Words>(_mm512_mullo_epi32(as<__m512i>(x), as<__m512i>(y)));
  }
  /// Of every word the bytes that four indices name; of a negative index 0.
  static Words bytes_of_words(Words x, int i0, int i1, int i2, int i3) {
    const auto byte = [](int index) {
      return static_cast<std::uint32_t>(index < 0 ? 0x80 : index);
    };
    const std::uint32_t first = byte(i0) | byte(i1) << 8 | byte(i2) << 16 | byte(i3) << 24;
    const __m512i places = _mm512_set4_epi32(0x0C0C0C0C, 0x08080808, 0x04040404, 0);
    return as<Words>(_mm512_shuffle_epi8(
        as<__m512i>(x), _mm512_add_epi32(places, _mm512_set1_epi32(static_cast<int>(first)))));
  }
  /// Of 16 bytes, in the low byte of each word, those that the words below 16 name.
  static Words bytes_looked_up(const std::uint8_t* table, Words index) {
    const __m512i bytes = _mm512_broadcast_i32x4(
        _mm_loadu_si128(static_cast<const __m128i*>(static_cast<const void*>(table))));
    return as<Words>(_mm512_shuffle_epi8(bytes, as<__m512i>(index | 0x80808000)));
  }

  /// Shifts by 32 and more give zero.
  static Words shift_left(Words x, Words n) {
    return as<Words>(_mm512_sllv_epi32(as<__m512i>(x), as<__m512i>(n)));
  }
  static Words shift_right(Words x, Words n) {
    return as<Words>(_mm512_srlv_epi32(as<__m512i>(x), as<__m512i>(n)));
  }
  /// By 64 and more likewise.
  static Longs shift_left(Longs x, Longs n) {
    return as<Longs>(_mm512_sllv_epi64(as<__m512i>(x), as<__m512i>(n)));
  }
  static Longs shift_right(Longs x, Longs n) {
    return as<Longs>(_mm512_srlv_epi64(as<__m512i>(x), as<__m512i>(n)));
  }
  /// max(x - y, 0)
  static Shorts excess(Shorts x, Shorts y) {
    return as<Shorts>(_mm512_subs_epu16(as<__m512i>(x), as<__m512i>(y)));
  }
  /// Products of the low halves.
  static Longs low_products(Longs x, Longs y) {
    return as<Longs>(_mm512_mul_epu32(as<__m512i>(x), as<__m512i>(y)));
  }
  static std::uint32_t largest(Words x) { return _mm512_reduce_max_epu32(as<__m512i>(x)); }
  /// Of eight words at `table`, those that the indices name.
  static Words pick(const std::uint32_t* table, Words index) {
    const auto eight = as<__m256i>(load<Vectors<32>::Words>(table));
    return as<Words>(_mm512_permutexvar_epi32(as<__m512i>(index), _mm512_castsi256_si512(eight)));
  }
  /// Of 16 bytes those that the indices name.
  static Vectors<16>::Bytes looked_up(Vectors<16>::Bytes table, Vectors<16>::Bytes index) {
    return as<Vectors<16>::Bytes>(_mm_shuffle_epi8(as<__m128i>(table), as<__m128i>(index)));
  }
  /// Sums of four neighbouring bytes, as signed numbers. VNNI.
  static Vectors<16>::Words byte_sums(Vectors<16>::Bytes x) {
    return as<Vectors<16>::Words>(
        _mm_dpbusd_epi32(_mm_setzero_si128(), _mm_set1_epi8(1), as<__m128i>(x)));
  }
  /// Numbers of 16 bits, or of 8, in order.
  static Shorts narrowed(Words x0, Words x1) {
    const __m512i order = _mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7);
    return as<Shorts>(_mm512_permutexvar_epi64(order, packed(x0, x1)));
  }
  static Bytes narrowed(Words x0, Words x1, Words x2, Words x3) {
    // Each pack works within 128-bit parts; the last permutation puts those in order.
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    return as<Bytes>(
        _mm512_permutexvar_epi32(order, _mm512_packus_epi16(packed(x0, x1), packed(x2, x3))));
  }
  /// Past the caches, to a multiple of the vector's size.
  template <class Vector>
  static void stream(void* to, Vector x) {
    _mm512_stream_si512(static_cast<__m512i*>(to), as<__m512i>(x));
  }
  static void finish_streams() { _mm_sfence(); }

 private:
  static __m512i packed(Words x, Words y) {
    return _mm512_packus_epi32(as<__m512i>(x), as<__m512i>(y));
  }
  static constexpr int down = _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC;
  static constexpr int up = _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC;
  static constexpr int toward_zero = _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC;
};

}  // namespace guardbit::formats::vectors
