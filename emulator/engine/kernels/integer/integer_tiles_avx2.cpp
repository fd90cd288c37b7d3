#include "emulator/engine/cpu.hpp"
#include "emulator/engine/kernels/integer/integer_tiles.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2")
#endif

namespace guardbit::emulator {

namespace {

#include "emulator/engine/kernels/integer/integer_tile.inc"

struct Words256 {
  using Vector = __m256i;
  static constexpr int rows = 4, vectors = 3;

  static Vector zero() { return _mm256_setzero_si256(); }
  static Vector ones() { return _mm256_set1_epi16(1); }
  static Vector load(const std::byte* at) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at));
  }
  static void store(std::byte* at, Vector x) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(at), x);
  }
  static Vector broadcast(const std::byte* at) {
    return _mm256_broadcastd_epi32(_mm_loadu_si32(at));
  }
  static Vector add(Vector x, Vector y) { return _mm256_add_epi32(x, y); }
  /// Two products of at most 2^16 do not overflow.
  static Vector dot(Vector sum, Vector a, Vector b) {
    return _mm256_add_epi32(sum, _mm256_madd_epi16(a, b));
  }
  /// Where the signs of both differ from the sum's, the sum left the range on the side of x.
  static Vector saturated_add(Vector x, Vector y) {
    const Vector sum = _mm256_add_epi32(x, y);
    const Vector left = _mm256_and_si256(_mm256_xor_si256(x, sum), _mm256_xor_si256(y, sum));
    const Vector limit = _mm256_xor_si256(_mm256_srai_epi32(x, 31), _mm256_set1_epi32(0x7FFFFFFF));
    return _mm256_blendv_epi8(sum, limit, _mm256_srai_epi32(left, 31));
  }
};

}  // namespace

}  // namespace guardbit::emulator

#if defined(__clang__)
#pragma clang attribute pop
#pragma clang attribute push(__attribute__((target("avx2,avxvnni"))), apply_to = function)
#else
#pragma GCC target("avx2,avxvnni")
#endif

namespace guardbit::emulator {

namespace {

namespace with_vnni {

#include "emulator/engine/kernels/integer/integer_tile.inc"

template <bool b_is_unsigned>
struct Bytes256 : Words256 {
  static Vector ones() { return _mm256_set1_epi8(1); }
  static Vector dot(Vector sum, Vector a, Vector b) {
    return b_is_unsigned ? _mm256_dpbusd_avx_epi32(sum, b, a) : _mm256_dpbusd_avx_epi32(sum, a, b);
  }
};

}  // namespace with_vnni

}  // namespace

}  // namespace guardbit::emulator

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

namespace guardbit::emulator {

const IntegerTiles* integer_tiles_avx2() {
  static constexpr IntegerTiles tiles = {
      Words256::rows,
      Words256::vectors * 8,
      2,
      {add_products<Words256>, add_products<Words256>},
      {add_products_saturating<Words256>, add_products_saturating<Words256>},
      add_up<Words256>};
  return cpu::features().avx2_kernels ? &tiles : nullptr;
}

const IntegerTiles* integer_tiles_avxvnni() {
  using with_vnni::Bytes256;
  static constexpr IntegerTiles tiles = {
      Words256::rows,
      Words256::vectors * 8,
      4,
      {with_vnni::add_products<Bytes256<false>>, with_vnni::add_products<Bytes256<true>>},
      {with_vnni::add_products_saturating<Bytes256<false>>,
       with_vnni::add_products_saturating<Bytes256<true>>},
      with_vnni::add_up<Bytes256<false>>};
  return cpu::features().avx_vnni ? &tiles : nullptr;
}

}  // namespace guardbit::emulator

#else

namespace guardbit::emulator {
const IntegerTiles* integer_tiles_avx2() { return nullptr; }
const IntegerTiles* integer_tiles_avxvnni() { return nullptr; }
}  // namespace guardbit::emulator

#endif
