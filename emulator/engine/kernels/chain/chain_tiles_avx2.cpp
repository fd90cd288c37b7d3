#include "emulator/engine/cpu.hpp"
#include "emulator/engine/kernels/chain/chain_tiles.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma")
#endif

namespace guardbit::emulator {

namespace {

#include "emulator/engine/kernels/chain/chain_tile.inc"

struct Doubles256 {
  using Element = double;
  using Vector = __m256d;
  static constexpr int rows = 4, vectors = 3;

  static Vector zero() { return _mm256_setzero_pd(); }
  static Vector load(const std::byte* at) {
    return _mm256_loadu_pd(reinterpret_cast<const double*>(at));
  }
  static void store(std::byte* at, Vector x) { _mm256_storeu_pd(reinterpret_cast<double*>(at), x); }
  static Vector broadcast(const std::byte* at) {
    return _mm256_broadcast_sd(reinterpret_cast<const double*>(at));
  }
  static Vector fma(Vector a, Vector b, Vector c) { return _mm256_fmadd_pd(a, b, c); }
  static Vector fma_unless_nan(Vector a, Vector b, Vector c) {
    return _mm256_blendv_pd(fma(a, b, c), c, _mm256_cmp_pd(c, c, _CMP_UNORD_Q));
  }
  static Vector quieted(Vector x) {
    return _mm256_blendv_pd(x, _mm256_add_pd(x, x), _mm256_cmp_pd(x, x, _CMP_UNORD_Q));
  }
};

struct Singles256 {
  using Element = float;
  using Vector = __m256;
  static constexpr int rows = 4, vectors = 3;

  static Vector zero() { return _mm256_setzero_ps(); }
  static Vector load(const std::byte* at) {
    return _mm256_loadu_ps(reinterpret_cast<const float*>(at));
  }
  static void store(std::byte* at, Vector x) { _mm256_storeu_ps(reinterpret_cast<float*>(at), x); }
  static Vector broadcast(const std::byte* at) {
    return _mm256_broadcast_ss(reinterpret_cast<const float*>(at));
  }
  static Vector fma(Vector a, Vector b, Vector c) { return _mm256_fmadd_ps(a, b, c); }
  static Vector fma_unless_nan(Vector a, Vector b, Vector c) {
    return _mm256_blendv_ps(fma(a, b, c), c, _mm256_cmp_ps(c, c, _CMP_UNORD_Q));
  }
  static Vector quieted(Vector x) {
    return _mm256_blendv_ps(x, _mm256_add_ps(x, x), _mm256_cmp_ps(x, x, _CMP_UNORD_Q));
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

const ChainTiles* double_chains_avx2() {
  static constexpr ChainTiles tiles = {Doubles256::rows, Doubles256::vectors * 4,
                                       chain<Doubles256, false>, chain<Doubles256, true>};
  return cpu::features().avx2_kernels ? &tiles : nullptr;
}

const ChainTiles* single_chains_avx2() {
  static constexpr ChainTiles tiles = {Singles256::rows, Singles256::vectors * 8,
                                       chain<Singles256, false>, chain<Singles256, true>};
  return cpu::features().avx2_kernels ? &tiles : nullptr;
}

}  // namespace guardbit::emulator

#else

namespace guardbit::emulator {
const ChainTiles* double_chains_avx2() { return nullptr; }
const ChainTiles* single_chains_avx2() { return nullptr; }
}  // namespace guardbit::emulator

#endif
