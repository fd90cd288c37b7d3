#include <immintrin.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "emulator/engine/cpu.hpp"
#include "emulator/engine/kernels/chain/chain_tiles.hpp"

// What follows is compiled for the instruction set,
#include "formats/support/vectors/target_avx2.inc"
// these templates among it.
#include "emulator/engine/kernels/chain/chain_tile.hpp"
#include "formats/support/vectors/avx2.hpp"

namespace guardbit::emulator::chains {
namespace {
using formats::vectors::Avx2;
constexpr ChainTiles doubles = tiles<Avx2, Avx2::Doubles>, singles = tiles<Avx2, Avx2::Floats>;
}  // namespace
}  // namespace guardbit::emulator::chains

#include "formats/support/vectors/target_end.inc"

namespace guardbit::emulator {

const ChainTiles* double_chains_avx2() {
  return cpu::features().avx2_kernels ? &chains::doubles : nullptr;
}

const ChainTiles* single_chains_avx2() {
  return cpu::features().avx2_kernels ? &chains::singles : nullptr;
}

}  // namespace guardbit::emulator
