#pragma once

#include <immintrin.h>

#include <cstdint>

#include "formats/support/vectors/vector.hpp"

namespace guardbit::formats::vectors {

/// AVX2, FMA and F16C, with Avx512's members. Include it where the target allows that.
struct Avx2 : Vectors<32> {
  static constexpr bool names_rounding = false, nans_as_x86 = true;

  /// The thread must round down, or toward zero, which is the same above zero.
  static Doubles fma_down(Doubles a, Doubles b, Doubles c) { return _mm256_fmadd_pd(a, b, c); }
  static Floats fma_down(Floats a, Floats b, Floats c) { return _mm256_fmadd_ps(a, b, c); }
  static Doubles fma(Doubles a, Doubles b, Doubles c) { return _mm256_fmadd_pd(a, b, c); }
  static Floats fma(Floats a, Floats b, Floats c) { return _mm256_fmadd_ps(a, b, c); }

  static Doubles all(double x) { return _mm256_set1_pd(x); }
  static Floats all(float x) { return _mm256_set1_ps(x); }
  /// A number in memory in every lane.
  template <class Number>
  static auto factor(const std::byte* at) {
    Number x = 0;
    std::memcpy(&x, at, sizeof x);
    return all(x);
  }

  static Words words(Vectors<16>::Shorts x) {
    return as<Words>(_mm256_cvtepu16_epi32(as<__m128i>(x)));
  }
  static Words words(Vectors<8>::Bytes x) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, &x, sizeof bits);
    return as<Words>(_mm256_cvtepu8_epi32(_mm_cvtsi64_si128(static_cast<long long>(bits))));
  }
  static Doubles doubles(Vectors<16>::Floats x) { return _mm256_cvtps_pd(x); }
  static Vectors<16>::Floats floats(Doubles x) { return _mm256_cvtpd_ps(x); }

  static Doubles larger(Doubles x, Doubles y) { return _mm256_max_pd(x, y); }
  static Floats larger(Floats x, Floats y) { return _mm256_max_ps(x, y); }
  /// Of two NaNs y; of a number and a NaN y, too, which kernels hand over as a number.
  static Floats larger_magnitude(Floats x, Floats y) {
    const Floats sign = fill<Floats>(-0.0F);
    return _mm256_max_ps(_mm256_andnot_ps(sign, x), _mm256_andnot_ps(sign, y));
  }
  template <class Vector>
  static Vector and_or(Vector x, Vector y, Vector z) {
    return (x & y) | z;
  }

  template <class Vector>
  static Vector or_and(Vector x, Vector y, Vector z) {
    return x | (y & z);
  }
  static Doubles replaced(Doubles x, Doubles y, Doubles limit, Doubles magnitude) {
    const Doubles sign = fill<Doubles>(-0.0);
    const __m256d over = _mm256_cmp_pd(_mm256_andnot_pd(sign, y), limit, _CMP_GE_OQ);
    return _mm256_blendv_pd(x, _mm256_or_pd(_mm256_and_pd(x, sign), magnitude), over);
  }

  /// x less 1.5 * 2^p, p the exponent that the mask takes of x.
  static Doubles less_offset(Doubles x, Longs mask) {
    return _mm256_fnmadd_pd(as<Doubles>(as<Longs>(x) & mask), _mm256_set1_pd(1.5), x);
  }
  /// Byte n of every word.
  static Words byte_of_words(Words x, int n) {
    constexpr int none = -128;
    const __m256i first = _mm256_broadcastsi128_si256(_mm_setr_epi8(
        0, none, none, none, 4, none, none, none, 8, none, none, none, 12, none, none, none));
    const __m256i index = _mm256_add_epi32(first, _mm256_set1_epi32(n));
    return as<Words>(_mm256_shuffle_epi8(as<__m256i>(x), index));
  }

  static Bytes bit_counts(Bytes x) { return as<Bytes>(byte_counts(as<__m256i>(x))); }
  /// Of bytes below 16.
  static Bytes bit_counts_of_nibbles(Bytes x) {
    return as<Bytes>(_mm256_shuffle_epi8(counts_of_nibble(), as<__m256i>(x)));
  }
  static Shorts bit_counts(Shorts x) {
    return as<Shorts>(_mm256_maddubs_epi16(byte_counts(as<__m256i>(x)), _mm256_set1_epi8(1)));
  }
  static Words bit_counts(Words x) {
    return pair_products(bit_counts(as<Shorts>(x)), fill<Shorts>(1));
  }

  static Vectors<16>::Floats floats_toward_zero(Doubles x) {
    // Downward is toward zero of what is not negative.
    const auto sign = as<Longs>(x) & (std::uint64_t{1} << 63);
    const Vectors<16>::Floats magnitude = _mm256_cvtpd_ps(as<Doubles>(as<Longs>(x) ^ sign));
    const auto signs = __builtin_convertvector(sign >> 32, Vectors<16>::Words);
    return as<Vectors<16>::Floats>(as<Vectors<16>::Words>(magnitude) | signs);
  }
  static Vectors<16>::Shorts fp16_codes(Floats x) {
    return as<Vectors<16>::Shorts>(_mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT));
  }
  static Floats fp16_numbers(Vectors<16>::Shorts x) { return _mm256_cvtph_ps(as<__m128i>(x)); }
  static Floats fp16_rounded(Floats x) { return fp16_numbers(fp16_codes(x)); }

  /// At most 56 products of -12 to 12 and 0 to 24 a word: pairs are summed in 16 bits.
  struct ByteDots {
    static Shorts begin(Words /*start*/) { return Shorts{}; }
    static Shorts add(Shorts sums, Bytes x, Bytes y) {
      return sums + as<Shorts>(_mm256_maddubs_epi16(as<__m256i>(x), as<__m256i>(y)));
    }
    static Words end(Shorts sums, Words start) {
      return start + pair_products(sums, fill<Shorts>(1));
    }
  };
  /// Sums of products of two neighbouring numbers of 16 bits, signed.
  static Words pair_products(Shorts x, Shorts y) {
    return as<Words>(_mm256_madd_epi16(as<__m256i>(x), as<__m256i>(y)));
  }
  static Words less_third_byte(Words x, Words y) { return x - ((y >> 16) & 0xFF); }
  static Words larger_where(Words bits, Words x, Words y) {
    const Words larger = x > y ? x : y;
    return bits != 0 ? larger : x;
  }
  static Words high_words(Doubles even, Doubles odd) {
    return as<Words>(_mm256_blend_epi32(_mm256_srli_epi64(_mm256_castpd_si256(even), 32),
                                        _mm256_castpd_si256(odd), 0xAA));
  }

  using Mask = Words;
  static Mask at_least(Words x, Words y) {
    const __m256i larger = _mm256_max_epu32(as<__m256i>(x), as<__m256i>(y));
    return as<Mask>(_mm256_cmpeq_epi32(larger, as<__m256i>(x)));
  }
  static Mask equal(Words x, Words y) { return as<Mask>(x == y); }
  static bool any(Mask x) { return _mm256_testz_si256(as<__m256i>(x), as<__m256i>(x)) == 0; }
  static Words select(Mask mask, Words yes, Words no) {
    return as<Words>(_mm256_blendv_epi8(as<__m256i>(no), as<__m256i>(yes), as<__m256i>(mask)));
  }

  // Comparisons of numbers: none of them holds of a NaN.
  static Mask equal(Floats x, Floats y) { return as<Mask>(_mm256_cmp_ps(x, y, _CMP_EQ_OQ)); }
  static Mask less(Floats x, Floats y) { return as<Mask>(_mm256_cmp_ps(x, y, _CMP_LT_OQ)); }
  static Mask at_most(Floats x, Floats y) { return as<Mask>(_mm256_cmp_ps(x, y, _CMP_LE_OQ)); }
  static Mask unlike(Mask x) { return ~x; }
  /// Of signed words.
  static Mask less_signed(Words x, Words y) {
    return as<Mask>(_mm256_cmpgt_epi32(as<__m256i>(y), as<__m256i>(x)));
  }
  static bool all(Mask x) { return _mm256_movemask_ps(as<Floats>(x)) == 0xFF; }
  /// One bit a lane.
  static std::uint32_t bits_of(Mask x) {
    return static_cast<std::uint32_t>(_mm256_movemask_ps(as<Floats>(x)));
  }

  static Floats square_root(Floats x) { return _mm256_sqrt_ps(x); }
  static Doubles to_nearest_integer(Doubles x) {
    return _mm256_round_pd(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  }
  static Floats to_nearest_integer(Floats x) {
    return _mm256_round_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  }
  static Floats to_integer_toward_zero(Floats x) {
    return _mm256_round_ps(x, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
  }
  static Floats of_signed(Words x) { return _mm256_cvtepi32_ps(as<__m256i>(x)); }
  /// Toward zero; 2^31 where there is no such integer.
  static Words to_signed(Floats x) { return as<Words>(_mm256_cvttps_epi32(x)); }

  /// The CPU's own approximations, closer than 2^-11; which ones differs from CPU to CPU.
  static Floats near_reciprocals(Floats x) { return _mm256_rcp_ps(x); }
  static Floats near_reciprocal_roots(Floats x) { return _mm256_rsqrt_ps(x); }

  /// The upper halves of products of 16-bit lanes.
  static Words high_halves_of_products(Words x, Words y) {
    return as<Words>(_mm256_mulhi_epu16(as<__m256i>(x), as<__m256i>(y)));
  }
  /// Sums of the two products of signed 16-bit lanes in each word.
  static Words sums_of_products(Words x, Words y) {
    return as<Words>(_mm256_madd_epi16(as<__m256i>(x), as<__m256i>(y)));
  }
  static Words low_words_of_products(Words x, Words y) {
    return as<Words>(_mm256_mullo_epi32(as<__m256i>(x), as<__m256i>(y)));
  }
  /// Of every word the bytes that four indices name; of a negative index 0.
  static Words bytes_of_words(Words x, int i0, int i1, int i2, int i3) {
    const auto byte = [](int index) {
      return static_cast<std::uint32_t>(index < 0 ? 0x80 : index);
    };
    const std::uint32_t first = byte(i0) | byte(i1) << 8 | byte(i2) << 16 | byte(i3) << 24;
    const __m256i places = _mm256_setr_epi32(0, 0x04040404, 0x08080808, 0x0C0C0C0C, 0, 0x04040404,
                                             0x08080808, 0x0C0C0C0C);
    return as<Words>(_mm256_shuffle_epi8(
        as<__m256i>(x), _mm256_add_epi32(places, _mm256_set1_epi32(static_cast<int>(first)))));
  }
  /// Of 16 bytes, in the low byte of each word, those that the words below 16 name.
  static Words bytes_looked_up(const std::uint8_t* table, Words index) {
    const __m256i bytes = _mm256_broadcastsi128_si256(
        _mm_loadu_si128(static_cast<const __m128i*>(static_cast<const void*>(table))));
    return as<Words>(_mm256_shuffle_epi8(bytes, as<__m256i>(index | 0x80808000)));
  }

  static Words shift_left(Words x, Words n) {
    return as<Words>(_mm256_sllv_epi32(as<__m256i>(x), as<__m256i>(n)));
  }
  static Words shift_right(Words x, Words n) {
    return as<Words>(_mm256_srlv_epi32(as<__m256i>(x), as<__m256i>(n)));
  }
  static Longs shift_left(Longs x, Longs n) {
    return as<Longs>(_mm256_sllv_epi64(as<__m256i>(x), as<__m256i>(n)));
  }
  static Longs shift_right(Longs x, Longs n) {
    return as<Longs>(_mm256_srlv_epi64(as<__m256i>(x), as<__m256i>(n)));
  }
  static Shorts excess(Shorts x, Shorts y) {
    return as<Shorts>(_mm256_subs_epu16(as<__m256i>(x), as<__m256i>(y)));
  }
  static Longs low_products(Longs x, Longs y) {
    return as<Longs>(_mm256_mul_epu32(as<__m256i>(x), as<__m256i>(y)));
  }
  static std::uint32_t largest(Words x) {
    const __m256i all = as<__m256i>(x);
    __m128i most = _mm_max_epu32(_mm256_castsi256_si128(all), _mm256_extracti128_si256(all, 1));
    most = _mm_max_epu32(most, _mm_shuffle_epi32(most, 0x4E));
    most = _mm_max_epu32(most, _mm_shuffle_epi32(most, 0xB1));
    return static_cast<std::uint32_t>(_mm_cvtsi128_si32(most));
  }
  static Words pick(const std::uint32_t* table, Words index) {
    return as<Words>(
        _mm256_permutevar8x32_epi32(as<__m256i>(load<Words>(table)), as<__m256i>(index)));
  }
  static Vectors<16>::Bytes looked_up(Vectors<16>::Bytes table, Vectors<16>::Bytes index) {
    return as<Vectors<16>::Bytes>(_mm_shuffle_epi8(as<__m128i>(table), as<__m128i>(index)));
  }
  static Vectors<16>::Words byte_sums(Vectors<16>::Bytes x) {
    const __m128i pairs = _mm_maddubs_epi16(_mm_set1_epi8(1), as<__m128i>(x));
    return as<Vectors<16>::Words>(_mm_madd_epi16(pairs, _mm_set1_epi16(1)));
  }
  static Shorts narrowed(Words x0, Words x1) {
    return as<Shorts>(_mm256_permute4x64_epi64(packed(x0, x1), 0xD8));  // 0, 2, 1, 3
  }
  static Bytes narrowed(Words x0, Words x1, Words x2, Words x3) {
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    return as<Bytes>(
        _mm256_permutevar8x32_epi32(_mm256_packus_epi16(packed(x0, x1), packed(x2, x3)), order));
  }
  template <class Vector>
  static void stream(void* to, Vector x) {
    _mm256_stream_si256(static_cast<__m256i*>(to), as<__m256i>(x));
  }
  static void finish_streams() { _mm_sfence(); }

 private:
  static __m256i packed(Words x, Words y) {
    return _mm256_packus_epi32(as<__m256i>(x), as<__m256i>(y));
  }
  static __m256i counts_of_nibble() {
    return _mm256_setr_epi8(0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4, 0, 1, 1, 2, 1, 2, 2, 3,
                            1, 2, 2, 3, 2, 3, 3, 4);
  }
  static __m256i byte_counts(__m256i x) {
    const __m256i of_nibble = counts_of_nibble();
    const __m256i nibble = _mm256_set1_epi8(15);
    const __m256i low = _mm256_shuffle_epi8(of_nibble, _mm256_and_si256(x, nibble));
    const __m256i high =
        _mm256_shuffle_epi8(of_nibble, _mm256_and_si256(_mm256_srli_epi16(x, 4), nibble));
    return _mm256_add_epi8(low, high);
  }
};

}  // namespace guardbit::formats::vectors
