#include "emulator/engine/cpu.hpp"
#include "emulator/engine/kernels/integer/integer_tiles.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f,avx512bw,avx512vl,avx512vnni"))), \
                             apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512vnni")
#endif

namespace guardbit::emulator {

namespace {

#include "emulator/engine/kernels/integer/integer_tile.inc"

template <bool b_is_unsigned>
struct Bytes512 {
  using Vector = __m512i;
  static constexpr int rows = 8, vectors = 3;
  /// Unmasked forms read an uninitialised variable in GCC 12's headers (GCC bug 105593).
  static constexpr __mmask16 every_lane = 0xFFFF;

  static Vector zero() { return _mm512_setzero_si512(); }
  static Vector ones() { return _mm512_set1_epi8(1); }
  static Vector load(const std::byte* at) { return _mm512_loadu_si512(at); }
  static void store(std::byte* at, Vector x) { _mm512_storeu_si512(at, x); }
  static Vector broadcast(const std::byte* at) {
    return _mm512_maskz_broadcastd_epi32(every_lane, _mm_loadu_si32(at));
  }
  static Vector add(Vector x, Vector y) { return _mm512_add_epi32(x, y); }
  static Vector dot(Vector sum, Vector a, Vector b) {
    return b_is_unsigned ? _mm512_dpbusd_epi32(sum, b, a) : _mm512_dpbusd_epi32(sum, a, b);
  }
  /// Where the signs of both differ from the sum's, the sum left the range on the side of x.
  static Vector saturated_add(Vector x, Vector y) {
    const Vector sum = _mm512_add_epi32(x, y);
    const Vector left = _mm512_and_si512(_mm512_xor_si512(x, sum), _mm512_xor_si512(y, sum));
    const Vector limit =
        _mm512_xor_si512(_mm512_maskz_srai_epi32(every_lane, x, 31), _mm512_set1_epi32(0x7FFFFFFF));
    return _mm512_mask_mov_epi32(sum, _mm512_cmplt_epi32_mask(left, zero()), limit);
  }
};

}  // namespace

}  // namespace guardbit::emulator

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

namespace guardbit::emulator {

const IntegerTiles* integer_tiles_avx512() {
  static constexpr IntegerTiles tiles = {
      Bytes512<false>::rows,
      Bytes512<false>::vectors * 16,
      4,
      {add_products<Bytes512<false>>, add_products<Bytes512<true>>},
      {add_products_saturating<Bytes512<false>>, add_products_saturating<Bytes512<true>>},
      add_up<Bytes512<false>>};
  const cpu::Features& cpu = cpu::features();
  return cpu.avx512_kernels && cpu.avx512_vnni ? &tiles : nullptr;
}

}  // namespace guardbit::emulator

#else

namespace guardbit::emulator {
const IntegerTiles* integer_tiles_avx512() { return nullptr; }
}  // namespace guardbit::emulator

#endif
