#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "formats/conversion/kernels/philox_keys.hpp"

namespace guardbit::formats::kernels {

/// PortableLanes' members for 16 lanes of AVX-512 (F, BW, DQ, VL). Include it where the target
/// allows that.
struct Avx512Lanes {
  static constexpr std::size_t count = 16;
  using Word = std::uint32_t __attribute__((vector_size(64)));
  using Mask = __mmask16;

  static Word set(std::uint32_t x) { return word(_mm512_set1_epi32(static_cast<int>(x))); }
  static Word load(const std::byte* at) { return word(_mm512_loadu_si512(at)); }
  static Word load16(const std::byte* at) {
    return word(_mm512_cvtepu16_epi32(
        _mm256_loadu_si256(static_cast<const __m256i*>(static_cast<const void*>(at)))));
  }
  static Word load8(const std::byte* at) {
    return word(_mm512_cvtepu8_epi32(
        _mm_loadu_si128(static_cast<const __m128i*>(static_cast<const void*>(at)))));
  }
  static void store(std::byte* at, Word x) { _mm512_storeu_si512(at, reg(x)); }

  static Word shift_left(Word x, Word n) { return word(_mm512_sllv_epi32(reg(x), reg(n))); }
  static Word shift_right(Word x, Word n) { return word(_mm512_srlv_epi32(reg(x), reg(n))); }
  static Word excess(Word x, Word y) { return word(_mm512_subs_epu16(reg(x), reg(y))); }
  static Word smaller(Word x, Word y) { return word(_mm512_min_epu32(reg(x), reg(y))); }
  static Word larger(Word x, Word y) { return word(_mm512_max_epu32(reg(x), reg(y))); }
  static std::uint32_t largest(Word x) { return _mm512_reduce_max_epu32(reg(x)); }
  static Mask at_least(Word x, Word y) { return _mm512_cmpge_epu32_mask(reg(x), reg(y)); }
  static Mask equal(Word x, Word y) { return _mm512_cmpeq_epi32_mask(reg(x), reg(y)); }
  static Mask either(Mask x, Mask y) { return static_cast<Mask>(x | y); }
  static Mask both(Mask x, Mask y) { return static_cast<Mask>(x & y); }
  static Mask without(Mask x, Mask y) { return static_cast<Mask>(x & ~y); }
  static bool any(Mask x) { return x != 0; }
  static Word select(Mask mask, Word yes, Word no) {
    return word(_mm512_mask_mov_epi32(reg(no), mask, reg(yes)));
  }
  static Word negative(Word x) { return word(_mm512_srai_epi32(reg(x), 31)); }
  static Word float_of(Word x) { return word(_mm512_castps_si512(_mm512_cvtepi32_ps(reg(x)))); }
  static Word high_product(Word significand, Word high, Word low) {
    const auto of_even = [&](__m512i even) {
      const __m512i low_product = _mm512_mul_epu32(even, reg(low));
      const __m512i product =
          _mm512_add_epi64(_mm512_mul_epu32(even, reg(high)), _mm512_srli_epi64(low_product, 32));
      const __mmask8 lost =
          static_cast<__mmask8>(_mm512_test_epi64_mask(product, _mm512_set1_epi64(0xFFFFFF)) |
                                _mm512_test_epi64_mask(low_product, _mm512_set1_epi64(0xFFFFFFFF)));
      const __m512i kept = _mm512_srli_epi64(product, 24);
      return _mm512_mask_or_epi64(kept, lost, kept, _mm512_set1_epi64(1));
    };
    const __m512i even = of_even(reg(significand));
    const __m512i odd = of_even(_mm512_srli_epi64(reg(significand), 32));
    return word(_mm512_or_si512(even, _mm512_slli_epi64(odd, 32)));
  }

  static Word upper_of_sum(Word x, Word shift, Word a, Word b) {
    // A shift that is negative is a long one, which leaves nothing, as an unsigned number.
    const __m512i low = _mm512_set1_epi64(0xFFFFFFFF);
    const auto of_even = [&](__m512i significand, __m512i left, __m512i right, __m512i product) {
      const __m512i shifted = _mm512_or_si512(_mm512_sllv_epi64(significand, left),
                                              _mm512_srlv_epi64(significand, right));
      return _mm512_add_epi64(shifted, product);
    };
    const __m512i left = reg(shift);
    const __m512i right = _mm512_sub_epi32(_mm512_setzero_si512(), left);
    const __m512i even = of_even(_mm512_and_si512(reg(x), low), _mm512_and_si512(left, low),
                                 _mm512_and_si512(right, low), _mm512_mul_epu32(reg(a), reg(b)));
    const __m512i odd = of_even(
        _mm512_srli_epi64(reg(x), 32), _mm512_srli_epi64(left, 32), _mm512_srli_epi64(right, 32),
        _mm512_mul_epu32(_mm512_srli_epi64(reg(a), 32), _mm512_srli_epi64(reg(b), 32)));
    return word(_mm512_mask_blend_epi32(0xAAAA, _mm512_srli_epi64(even, 32), odd));
  }
  static Word pick(const std::uint32_t* words, Word index) {
    const __m256i eight =
        _mm256_loadu_si256(static_cast<const __m256i*>(static_cast<const void*>(words)));
    return word(_mm512_permutexvar_epi32(reg(index), _mm512_castsi256_si512(eight)));
  }

  static void store8(std::byte* at, Word x0, Word x1, Word x2, Word x3, bool stream) {
    // Each pack works within 128-bit parts; the last permutation puts those in order.
    const __m512i packed = _mm512_packus_epi16(_mm512_packus_epi32(reg(x0), reg(x1)),
                                               _mm512_packus_epi32(reg(x2), reg(x3)));
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    put(at, _mm512_permutexvar_epi32(order, packed), stream);
  }
  static void store16(std::byte* at, Word x0, Word x1, Word x2, Word x3, bool stream) {
    const __m512i order = _mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7);
    put(at, _mm512_permutexvar_epi64(order, _mm512_packus_epi32(reg(x0), reg(x1))), stream);
    put(at + 64, _mm512_permutexvar_epi64(order, _mm512_packus_epi32(reg(x2), reg(x3))), stream);
  }
  static void store32(std::byte* at, Word x0, Word x1, Word x2, Word x3, bool stream) {
    put(at, reg(x0), stream);
    put(at + 64, reg(x1), stream);
    put(at + 128, reg(x2), stream);
    put(at + 192, reg(x3), stream);
  }
  static void finish_streams() { _mm_sfence(); }

  static constexpr std::size_t random_step = 32;
  static void random_words(const PhiloxKeys& keys, std::uint64_t first, std::uint32_t* words) {
    // Eight counters, each word of one in the low half of a 64-bit lane; what the products leave
    // in the upper halves is never multiplied.
    const __m512i low = _mm512_set1_epi64(0xFFFFFFFF);
    const __m512i counter = _mm512_add_epi64(_mm512_set1_epi64(static_cast<long long>(first / 4)),
                                             _mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7));
    __m512i c0 = _mm512_and_si512(counter, low);
    __m512i c1 = _mm512_srli_epi64(counter, 32);
    __m512i c2 = _mm512_setzero_si512();
    __m512i c3 = _mm512_setzero_si512();
    for (const auto& key : keys) {
      const __m512i product0 = _mm512_mul_epu32(c0, _mm512_set1_epi64(philox_multipliers[0]));
      const __m512i product1 = _mm512_mul_epu32(c2, _mm512_set1_epi64(philox_multipliers[1]));
      c0 = _mm512_xor_si512(_mm512_xor_si512(_mm512_srli_epi64(product1, 32), c1),
                            _mm512_set1_epi64(static_cast<long long>(key[0])));
      c1 = product1;
      c2 = _mm512_xor_si512(_mm512_xor_si512(_mm512_srli_epi64(product0, 32), c3),
                            _mm512_set1_epi64(static_cast<long long>(key[1])));
      c3 = product0;
    }
    const __m512i first_half =
        _mm512_or_si512(_mm512_and_si512(c0, low), _mm512_slli_epi64(c1, 32));
    const __m512i second_half =
        _mm512_or_si512(_mm512_and_si512(c2, low), _mm512_slli_epi64(c3, 32));
    _mm512_storeu_si512(
        words, _mm512_permutex2var_epi64(first_half, _mm512_setr_epi64(0, 8, 1, 9, 2, 10, 3, 11),
                                         second_half));
    _mm512_storeu_si512(
        words + 16, _mm512_permutex2var_epi64(
                        first_half, _mm512_setr_epi64(4, 12, 5, 13, 6, 14, 7, 15), second_half));
  }

 private:
  static Word word(__m512i x) { return reinterpret_cast<Word>(x); }
  static __m512i reg(Word x) { return reinterpret_cast<__m512i>(x); }
  static void put(std::byte* at, __m512i x, bool stream) {
    if (stream) {
      _mm512_stream_si512(static_cast<__m512i*>(static_cast<void*>(at)), x);
    } else {
      _mm512_storeu_si512(at, x);
    }
  }
};

}  // namespace guardbit::formats::kernels
