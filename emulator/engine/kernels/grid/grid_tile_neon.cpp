#include <arm_neon.h>

#include "emulator/engine/cpu.hpp"
#include "emulator/engine/kernels/grid/grid_blocks.hpp"
#include "emulator/engine/kernels/grid/grid_tile.hpp"
#include "formats/support/vectors/neon.hpp"

namespace guardbit::emulator::grids {

Tile tile_neon(const Arithmetic& arithmetic) {
  return cpu::features().neon_kernels ? find_tile<formats::vectors::Neon>(arithmetic) : nullptr;
}

}  // namespace guardbit::emulator::grids
