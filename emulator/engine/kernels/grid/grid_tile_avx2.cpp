#include "emulator/engine/kernels/grid/grid_tile.hpp"

// All that a template below could instantiate comes before the target, so that no other code of
// this program becomes AVX2 code.
#include <immintrin.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "emulator/engine/cpu.hpp"

// What follows is compiled for the instruction set,
#include "formats/support/vectors/target_avx2.inc"
// these templates among it.
#include "emulator/engine/kernels/grid/grid_blocks.hpp"
#include "formats/support/vectors/avx2.hpp"

namespace guardbit::emulator::grids {
namespace {
/// AVX2 with what tiles on grids ask of it.
struct Avx2 : formats::vectors::Avx2 {
  using formats::vectors::Avx2::larger;
  static Doubles larger(Doubles x, Doubles y) { return _mm256_max_pd(x, y); }
  static Doubles to_nearest_integer(Doubles x) {
    return _mm256_round_pd(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  }
  static Doubles to_integer_toward_zero(Doubles x) {
    return _mm256_round_pd(x, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
  }
  static Doubles to_integer_below(Doubles x) {
    return _mm256_round_pd(x, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
  }
};

constexpr auto find = find_tile<Avx2>;
}  // namespace
}  // namespace guardbit::emulator::grids

#include "formats/support/vectors/target_end.inc"

namespace guardbit::emulator::grids {
Tile tile_avx2(const Arithmetic& arithmetic) {
  return cpu::features().avx2_kernels ? find(arithmetic) : nullptr;
}
}  // namespace guardbit::emulator::grids
