#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "formats/conversion/kernels/philox_keys.hpp"

namespace guardbit::formats::kernels {

/// PortableLanes' members for 8 lanes of AVX2. Include it where the target allows that.
struct Avx2Lanes {
  static constexpr std::size_t count = 8;
  using Word = std::uint32_t __attribute__((vector_size(32)));
  using Mask = Word;

  static Word set(std::uint32_t x) { return word(_mm256_set1_epi32(static_cast<int>(x))); }
  static Word load(const std::byte* at) { return word(_mm256_loadu_si256(vector(at))); }
  static Word load16(const std::byte* at) {
    return word(_mm256_cvtepu16_epi32(
        _mm_loadu_si128(static_cast<const __m128i*>(static_cast<const void*>(at)))));
  }
  static Word load8(const std::byte* at) {
    return word(_mm256_cvtepu8_epi32(
        _mm_loadl_epi64(static_cast<const __m128i*>(static_cast<const void*>(at)))));
  }
  static void store(std::byte* at, Word x) { _mm256_storeu_si256(vector(at), reg(x)); }

  static Word shift_left(Word x, Word n) { return word(_mm256_sllv_epi32(reg(x), reg(n))); }
  static Word shift_right(Word x, Word n) { return word(_mm256_srlv_epi32(reg(x), reg(n))); }
  static Word excess(Word x, Word y) { return word(_mm256_subs_epu16(reg(x), reg(y))); }
  static Word smaller(Word x, Word y) { return word(_mm256_min_epu32(reg(x), reg(y))); }
  static Word larger(Word x, Word y) { return word(_mm256_max_epu32(reg(x), reg(y))); }
  static std::uint32_t largest(Word x) {
    __m128i most =
        _mm_max_epu32(_mm256_castsi256_si128(reg(x)), _mm256_extracti128_si256(reg(x), 1));
    most = _mm_max_epu32(most, _mm_shuffle_epi32(most, 0x4E));
    most = _mm_max_epu32(most, _mm_shuffle_epi32(most, 0xB1));
    return static_cast<std::uint32_t>(_mm_cvtsi128_si32(most));
  }
  static Mask at_least(Word x, Word y) {
    return word(_mm256_cmpeq_epi32(_mm256_max_epu32(reg(x), reg(y)), reg(x)));
  }
  static Mask equal(Word x, Word y) { return word(_mm256_cmpeq_epi32(reg(x), reg(y))); }
  static Mask either(Mask x, Mask y) { return x | y; }
  static Mask both(Mask x, Mask y) { return x & y; }
  static Mask without(Mask x, Mask y) { return x & ~y; }
  static bool any(Mask x) { return _mm256_testz_si256(reg(x), reg(x)) == 0; }
  static Word select(Mask mask, Word yes, Word no) {
    return word(_mm256_blendv_epi8(reg(no), reg(yes), reg(mask)));
  }
  static Word negative(Word x) { return word(_mm256_srai_epi32(reg(x), 31)); }
  static Word float_of(Word x) { return word(_mm256_castps_si256(_mm256_cvtepi32_ps(reg(x)))); }
  static Word high_product(Word significand, Word high, Word low) {
    const auto of_even = [&](__m256i even) {
      const __m256i low_product = _mm256_mul_epu32(even, reg(low));
      const __m256i product =
          _mm256_add_epi64(_mm256_mul_epu32(even, reg(high)), _mm256_srli_epi64(low_product, 32));
      const __m256i lost =
          _mm256_or_si256(_mm256_and_si256(product, _mm256_set1_epi64x(0xFFFFFF)),
                          _mm256_and_si256(low_product, _mm256_set1_epi64x(0xFFFFFFFF)));
      const __m256i nothing = _mm256_cmpeq_epi64(lost, _mm256_setzero_si256());
      return _mm256_or_si256(_mm256_srli_epi64(product, 24),
                             _mm256_andnot_si256(nothing, _mm256_set1_epi64x(1)));
    };
    const __m256i even = of_even(reg(significand));
    const __m256i odd = of_even(_mm256_srli_epi64(reg(significand), 32));
    return word(_mm256_or_si256(even, _mm256_slli_epi64(odd, 32)));
  }

  static Word upper_of_sum(Word x, Word shift, Word a, Word b) {
    // A shift that is negative is a long one, which leaves nothing, as an unsigned number.
    const __m256i low = _mm256_set1_epi64x(0xFFFFFFFF);
    const auto of_even = [&](__m256i significand, __m256i left, __m256i right, __m256i product) {
      const __m256i shifted = _mm256_or_si256(_mm256_sllv_epi64(significand, left),
                                              _mm256_srlv_epi64(significand, right));
      return _mm256_add_epi64(shifted, product);
    };
    const __m256i left = reg(shift);
    const __m256i right = _mm256_sub_epi32(_mm256_setzero_si256(), left);
    const __m256i even = of_even(_mm256_and_si256(reg(x), low), _mm256_and_si256(left, low),
                                 _mm256_and_si256(right, low), _mm256_mul_epu32(reg(a), reg(b)));
    const __m256i odd = of_even(
        _mm256_srli_epi64(reg(x), 32), _mm256_srli_epi64(left, 32), _mm256_srli_epi64(right, 32),
        _mm256_mul_epu32(_mm256_srli_epi64(reg(a), 32), _mm256_srli_epi64(reg(b), 32)));
    return word(_mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xAA));
  }
  static Word pick(const std::uint32_t* words, Word index) {
    const __m256i eight =
        _mm256_loadu_si256(static_cast<const __m256i*>(static_cast<const void*>(words)));
    return word(_mm256_permutevar8x32_epi32(eight, reg(index)));
  }

  static void store8(std::byte* at, Word x0, Word x1, Word x2, Word x3, bool stream) {
    const __m256i packed = _mm256_packus_epi16(_mm256_packus_epi32(reg(x0), reg(x1)),
                                               _mm256_packus_epi32(reg(x2), reg(x3)));
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    put(at, _mm256_permutevar8x32_epi32(packed, order), stream);
  }
  static void store16(std::byte* at, Word x0, Word x1, Word x2, Word x3, bool stream) {
    constexpr int order = 0xD8;  // 0, 2, 1, 3
    put(at, _mm256_permute4x64_epi64(_mm256_packus_epi32(reg(x0), reg(x1)), order), stream);
    put(at + 32, _mm256_permute4x64_epi64(_mm256_packus_epi32(reg(x2), reg(x3)), order), stream);
  }
  static void store32(std::byte* at, Word x0, Word x1, Word x2, Word x3, bool stream) {
    put(at, reg(x0), stream);
    put(at + 32, reg(x1), stream);
    put(at + 64, reg(x2), stream);
    put(at + 96, reg(x3), stream);
  }
  static void finish_streams() { _mm_sfence(); }

  static constexpr std::size_t random_step = 16;
  static void random_words(const PhiloxKeys& keys, std::uint64_t first, std::uint32_t* words) {
    // As with AVX-512: a word of a counter in the low half of each 64-bit lane.
    const __m256i low = _mm256_set1_epi64x(0xFFFFFFFF);
    const __m256i counter = _mm256_add_epi64(_mm256_set1_epi64x(static_cast<long long>(first / 4)),
                                             _mm256_setr_epi64x(0, 1, 2, 3));
    __m256i c0 = _mm256_and_si256(counter, low);
    __m256i c1 = _mm256_srli_epi64(counter, 32);
    __m256i c2 = _mm256_setzero_si256();
    __m256i c3 = _mm256_setzero_si256();
    for (const auto& key : keys) {
      const __m256i product0 = _mm256_mul_epu32(c0, _mm256_set1_epi64x(philox_multipliers[0]));
      const __m256i product1 = _mm256_mul_epu32(c2, _mm256_set1_epi64x(philox_multipliers[1]));
      c0 = _mm256_xor_si256(_mm256_xor_si256(_mm256_srli_epi64(product1, 32), c1),
                            _mm256_set1_epi64x(static_cast<long long>(key[0])));
      c1 = product1;
      c2 = _mm256_xor_si256(_mm256_xor_si256(_mm256_srli_epi64(product0, 32), c3),
                            _mm256_set1_epi64x(static_cast<long long>(key[1])));
      c3 = product0;
    }
    const __m256i first_half =
        _mm256_or_si256(_mm256_and_si256(c0, low), _mm256_slli_epi64(c1, 32));
    const __m256i second_half =
        _mm256_or_si256(_mm256_and_si256(c2, low), _mm256_slli_epi64(c3, 32));
    const __m256i even = _mm256_unpacklo_epi64(first_half, second_half);  // counters 0 and 2
    const __m256i odd = _mm256_unpackhi_epi64(first_half, second_half);
    _mm256_storeu_si256(vector(words), _mm256_permute2x128_si256(even, odd, 0x20));
    _mm256_storeu_si256(vector(words + 8), _mm256_permute2x128_si256(even, odd, 0x31));
  }

 private:
  static Word word(__m256i x) { return reinterpret_cast<Word>(x); }
  static __m256i reg(Word x) { return reinterpret_cast<__m256i>(x); }
  static const __m256i* vector(const void* at) { return static_cast<const __m256i*>(at); }
  static __m256i* vector(void* at) { return static_cast<__m256i*>(at); }
  static void put(std::byte* at, __m256i x, bool stream) {
    if (stream) {
      _mm256_stream_si256(vector(at), x);
    } else {
      _mm256_storeu_si256(vector(at), x);
    }
  }
};

}  // namespace guardbit::formats::kernels
