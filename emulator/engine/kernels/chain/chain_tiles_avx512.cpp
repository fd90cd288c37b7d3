#include "emulator/engine/cpu.hpp"
#include "emulator/engine/kernels/chain/chain_tiles.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f")
#endif

namespace guardbit::emulator {

namespace {

#include "emulator/engine/kernels/chain/chain_tile.inc"

struct Doubles512 {
  using Element = double;
  using Vector = __m512d;
  static constexpr int rows = 8, vectors = 3;

  static Vector zero() { return _mm512_setzero_pd(); }
  static Vector load(const std::byte* at) { return _mm512_loadu_pd(at); }
  static void store(std::byte* at, Vector x) { _mm512_storeu_pd(at, x); }
  static Vector broadcast(const std::byte* at) {
    return _mm512_set1_pd(*reinterpret_cast<const double*>(at));
  }
  static Vector fma(Vector a, Vector b, Vector c) { return _mm512_fmadd_pd(a, b, c); }
  static Vector fma_unless_nan(Vector a, Vector b, Vector c) {
    return _mm512_mask3_fmadd_pd(a, b, c, _mm512_cmp_pd_mask(c, c, _CMP_ORD_Q));
  }
  static Vector quieted(Vector x) {
    return _mm512_mask_add_pd(x, _mm512_cmp_pd_mask(x, x, _CMP_UNORD_Q), x, x);
  }
};

struct Singles512 {
  using Element = float;
  using Vector = __m512;
  static constexpr int rows = 8, vectors = 3;

  static Vector zero() { return _mm512_setzero_ps(); }
  static Vector load(const std::byte* at) { return _mm512_loadu_ps(at); }
  static void store(std::byte* at, Vector x) { _mm512_storeu_ps(at, x); }
  static Vector broadcast(const std::byte* at) {
    return _mm512_set1_ps(*reinterpret_cast<const float*>(at));
  }
  static Vector fma(Vector a, Vector b, Vector c) { return _mm512_fmadd_ps(a, b, c); }
  static Vector fma_unless_nan(Vector a, Vector b, Vector c) {
    return _mm512_mask3_fmadd_ps(a, b, c, _mm512_cmp_ps_mask(c, c, _CMP_ORD_Q));
  }
  static Vector quieted(Vector x) {
    return _mm512_mask_add_ps(x, _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q), x, x);
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

const ChainTiles* double_chains_avx512() {
  static constexpr ChainTiles tiles = {Doubles512::rows, Doubles512::vectors * 8,
                                       chain<Doubles512, false>, chain<Doubles512, true>};
  return cpu::features().avx512_kernels ? &tiles : nullptr;
}

const ChainTiles* single_chains_avx512() {
  static constexpr ChainTiles tiles = {Singles512::rows, Singles512::vectors * 16,
                                       chain<Singles512, false>, chain<Singles512, true>};
  return cpu::features().avx512_kernels ? &tiles : nullptr;
}

}  // namespace guardbit::emulator

#else

namespace guardbit::emulator {
const ChainTiles* double_chains_avx512() { return nullptr; }
const ChainTiles* single_chains_avx512() { return nullptr; }
}  // namespace guardbit::emulator

#endif
