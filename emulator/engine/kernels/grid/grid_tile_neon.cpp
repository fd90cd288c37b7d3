#include <arm_neon.h>

#include "emulator/engine/cpu.hpp"
#include "emulator/engine/kernels/grid/grid_blocks.hpp"
#include "emulator/engine/kernels/grid/grid_tile.hpp"
#include "formats/support/vectors/neon.hpp"

namespace guardbit::emulator::grids {

namespace {

/// NEON with what tiles on grids ask of it.
struct Neon : formats::vectors::Neon {
  using formats::vectors::Neon::larger;
  static Doubles larger(Doubles x, Doubles y) { return x > y ? x : y; }
  static Doubles to_nearest_integer(Doubles x) {
    return formats::vectors::as<Doubles>(vrndnq_f64(formats::vectors::as<float64x2_t>(x)));
  }
  static Doubles to_integer_toward_zero(Doubles x) {
    return formats::vectors::as<Doubles>(vrndq_f64(formats::vectors::as<float64x2_t>(x)));
  }
  static Doubles to_integer_below(Doubles x) {
    return formats::vectors::as<Doubles>(vrndmq_f64(formats::vectors::as<float64x2_t>(x)));
  }
};

}  // namespace

Tile tile_neon(const Arithmetic& arithmetic) {
  return cpu::features().neon_kernels ? find_tile<Neon>(arithmetic) : nullptr;
}

}  // namespace guardbit::emulator::grids
