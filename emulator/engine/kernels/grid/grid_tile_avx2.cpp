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
constexpr auto find = find_tile<formats::vectors::Avx2>;
}  // namespace
}  // namespace guardbit::emulator::grids

#include "formats/support/vectors/target_end.inc"

namespace guardbit::emulator::grids {
Tile tile_avx2(const Arithmetic& arithmetic) {
  return cpu::features().avx2_kernels ? find(arithmetic) : nullptr;
}
}  // namespace guardbit::emulator::grids
