#pragma once

// The unit's square by the instructions of AVX-512. Included behind `#pragma GCC target`.

#include <immintrin.h>

#include "emulator/functions/kernels/vector_unit.hpp"
#include "formats/support/vectors/avx512.hpp"

namespace guardbit::emulator::kernels {

/// The upper 8 bits shifted by 1 to 7 are bytes, each of which one of the lower bits takes part
/// with or not; bytes are then added four at a time.
template <>
struct TruncatedSquare<formats::vectors::Avx512> {
  using Words = formats::vectors::Avx512::Words;

  static Words of(Words x) {
    const __m512i words = formats::vectors::as<__m512i>(x), ones = _mm512_set1_epi8(1);
    const __m512i upper = _mm512_srli_epi32(words, 9);
    __m512i sum = _mm512_srli_epi32(_mm512_madd_epi16(upper, upper), 1);
    sum = _mm512_dpbusd_epi32(sum, shifted(words, 0x0d0c0b0a, 0x05060708), ones);
    sum = _mm512_dpbusd_epi32(sum, shifted(words, 0x18100f0e, 0x1f020304), ones);
    return formats::vectors::as<Words>(sum);
  }

 private:
  /// In each byte of a word what lies above a place in it, if another of its bits is set; places of
  /// four bytes, the lowest one first.
  static __m512i shifted(__m512i words, int places, int bits) {
    const __m512i upper_word = _mm512_set1_epi64(0x2020202000000000);
    const __mmask64 takes_part =
        _mm512_bitshuffle_epi64_mask(words, _mm512_or_si512(_mm512_set1_epi32(bits), upper_word));
    return _mm512_maskz_multishift_epi64_epi8(
        takes_part, _mm512_or_si512(_mm512_set1_epi32(places), upper_word), words);
  }
};

}  // namespace guardbit::emulator::kernels
