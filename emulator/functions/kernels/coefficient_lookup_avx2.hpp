#pragma once

// Tables of coefficients in registers or memory, by the instructions of AVX2. Included behind
// `#pragma GCC target`.

#include <immintrin.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "emulator/functions/kernels/unit_tables.hpp"
#include "emulator/functions/kernels/vector_number.hpp"
#include "formats/support/vectors/avx2.hpp"

namespace guardbit::emulator::kernels {

using formats::vectors::Avx2;

template <>
struct CoefficientLookup<Avx2> {
  using Words = Avx2::Words;

  /// Entries are loaded one by one, which is quicker than gathering them.
  template <std::size_t count>
  [[gnu::always_inline]] static void find(const CoefficientTable<count>& table, Words index,
                                          Words& first, Words& second) {
    Words places = index & static_cast<std::uint32_t>(count - 1);
    asm("" : "+m"(places));  // else GCC takes lanes out of the register, which is slower
    const auto place = [&](int lane) __attribute__((always_inline)) {
      std::uint32_t at = 0;
      std::memcpy(&at, static_cast<const char*>(static_cast<const void*>(&places)) + 4 * lane, 4);
      return at;
    };
    const auto two = [&](int i, int j) __attribute__((always_inline)) {
      const __m128i low = _mm_loadl_epi64(at(table, place(i)));
      return _mm_castps_si128(
          _mm_loadh_pi(_mm_castsi128_ps(low),
                       static_cast<const __m64*>(static_cast<const void*>(at(table, place(j))))));
    };
    // Words of one kind come together within 128 bits.
    const __m256 front = _mm256_castsi256_ps(_mm256_set_m128i(two(4, 5), two(0, 1)));
    const __m256 back = _mm256_castsi256_ps(_mm256_set_m128i(two(6, 7), two(2, 3)));
    first = formats::vectors::as<Words>(_mm256_shuffle_ps(front, back, 0x88));
    second = formats::vectors::as<Words>(_mm256_shuffle_ps(front, back, 0xDD));
  }

 private:
  template <std::size_t count>
  [[gnu::always_inline]] static const __m128i* at(const CoefficientTable<count>& table,
                                                  std::uint32_t place) {
    return static_cast<const __m128i*>(static_cast<const void*>(table.entries.data() + place));
  }
};

}  // namespace guardbit::emulator::kernels
