#include "emulator/engine/cpu.hpp"
#include "emulator/engine/kernels/integer/integer_tile.hpp"
#include "emulator/engine/kernels/integer/integer_tiles.hpp"
#include "formats/support/vectors/neon.hpp"

namespace guardbit::emulator {

const IntegerTiles* integer_tiles_neon() {
  static constexpr IntegerTiles tiles =
      integers::tiles<Factors::words, integers::WordDots<formats::vectors::Neon>>;
  return cpu::features().neon_kernels ? &tiles : nullptr;
}

}  // namespace guardbit::emulator
