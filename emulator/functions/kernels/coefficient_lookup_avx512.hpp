#pragma once

// Tables of coefficients in registers or memory, by the instructions of AVX-512. Included behind
// `#pragma GCC target`.

#include <immintrin.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "emulator/functions/kernels/unit_tables.hpp"
#include "emulator/functions/kernels/vector_number.hpp"
#include "formats/support/vectors/avx512.hpp"

namespace guardbit::emulator::kernels {

using formats::vectors::Avx512;

template <>
struct CoefficientLookup<Avx512> {
  using Words = Avx512::Words;

  template <std::size_t count>
  static void find(const CoefficientTable<count>& table, Words index, Words& first, Words& second) {
    first = found<count>(table.first.data(), index);
    second = found<count>(table.second.data(), index);
  }

 private:
  /// Parts of 32 words, which two registers hold; the index's upper bits choose among them.
  template <std::size_t count>
  static Words found(const std::uint32_t* table, Words index) {
    const __m512i place = formats::vectors::as<__m512i>(index);
    if constexpr (count == 32) {
      return formats::vectors::as<Words>(_mm512_permutex2var_epi32(_mm512_loadu_si512(table), place,
                                                                   _mm512_loadu_si512(table + 16)));
    } else {
      const __mmask16 is_upper =
          _mm512_test_epi32_mask(place, _mm512_set1_epi32(static_cast<int>(count / 2)));
      const __m512i low = formats::vectors::as<__m512i>(found<count / 2>(table, index));
      const __m512i high =
          formats::vectors::as<__m512i>(found<count / 2>(table + count / 2, index));
      return formats::vectors::as<Words>(_mm512_mask_mov_epi32(low, is_upper, high));
    }
  }
};

}  // namespace guardbit::emulator::kernels
