#include "emulator/engine/kernels/fused/fused_kernels.hpp"
#include "emulator/engine/kernels/fused/tile_kernels.hpp"
#include "formats/support/vectors/neon.hpp"

namespace guardbit::emulator::fused {

Kernels kernels_neon() { return kernels_of<formats::vectors::Neon>(); }

}  // namespace guardbit::emulator::fused
