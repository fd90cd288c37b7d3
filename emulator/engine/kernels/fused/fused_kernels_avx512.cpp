#include "emulator/engine/kernels/fused/fused_kernels.hpp"

// All that a template below could instantiate comes before the target, so that no other code of
// this program becomes AVX-512 code.
#include <immintrin.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

#include "emulator/engine/cpu.hpp"
#include "emulator/engine/kernels/fused/panel_layout.hpp"
#include "emulator/engine/kernels/shared/blocked_product.hpp"
#include "emulator/engine/kernels/shared/default_environment.hpp"
#include "emulator/engine/kernels/shared/panel_memory.hpp"
#include "formats/support/parallel.hpp"

// What follows is compiled for the instruction set,
#include "formats/support/vectors/target_avx512.inc"
// these templates among it.
#include "emulator/engine/kernels/fused/tile_kernels.hpp"
#include "formats/support/vectors/avx512.hpp"

namespace guardbit::emulator::fused {
namespace {
constexpr Kernels kernels = kernels_of<formats::vectors::Avx512>();
}  // namespace
}  // namespace guardbit::emulator::fused

#include "formats/support/vectors/target_end.inc"

namespace guardbit::emulator::fused {
Kernels kernels_avx512() { return cpu::features().avx512_kernels ? kernels : Kernels{}; }
}  // namespace guardbit::emulator::fused
