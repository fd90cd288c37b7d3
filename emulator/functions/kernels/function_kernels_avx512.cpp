#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "emulator/functions/kernels/function_kernels.hpp"
#include "emulator/functions/kernels/large_angles.hpp"
#include "emulator/functions/kernels/unit_tables.hpp"
#include "formats/rounding.hpp"

#if defined(__x86_64__)

#include <immintrin.h>

// Whatever is defined from here on is compiled for AVX-512; all else that the headers need is
// included above.
#if !defined(__clang__)
// GCC 12's own headers leave the operand of _mm512_undefined unset, and warn of it.
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#if defined(__clang__)
#pragma clang attribute push(                                                                \
    __attribute__((                                                                          \
        target("avx512f,avx512bw,avx512dq,avx512vl,avx512bitalg,avx512vpopcntdq,avx512vbmi," \
               "avx2,fma,f16c"))),                                                           \
    apply_to = function)
#else
#pragma GCC target( \
    "avx512f,avx512bw,avx512dq,avx512vl,avx512bitalg,avx512vpopcntdq,avx512vbmi,avx2,fma,f16c")
#endif

#if !defined(__clang__)
// GCC 12 warns of the ABI of lambdas, all of which are inlined.
#pragma GCC diagnostic ignored "-Wpsabi"
#endif

#include "emulator/functions/kernels/vector_kernels.hpp"
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

namespace {
constexpr auto kernels = all_kernels_of<Avx512>();
}  // namespace
const std::span<const FunctionKernel> avx512 = kernels;

}  // namespace guardbit::emulator::kernels

#if defined(__clang__)
#pragma clang attribute pop
#endif
// GCC instantiates templates at the end of the file, lambdas in them by the options in force there.

#else

namespace guardbit::emulator::kernels {
const std::span<const FunctionKernel> avx512;
}  // namespace guardbit::emulator::kernels

#endif
