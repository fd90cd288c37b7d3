#include "emulator/engine/cpu.hpp"
#include "emulator/engine/kernels/chain/chain_tile.hpp"
#include "emulator/engine/kernels/chain/chain_tiles.hpp"
#include "formats/support/vectors/neon.hpp"

namespace guardbit::emulator {

using formats::vectors::Neon;

const ChainTiles* double_chains_neon() {
  static constexpr ChainTiles tiles = chains::tiles<Neon, Neon::Doubles>;
  return cpu::features().neon_kernels ? &tiles : nullptr;
}

const ChainTiles* single_chains_neon() {
  static constexpr ChainTiles tiles = chains::tiles<Neon, Neon::Floats>;
  return cpu::features().neon_kernels ? &tiles : nullptr;
}

}  // namespace guardbit::emulator
