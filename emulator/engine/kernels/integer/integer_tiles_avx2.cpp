#include <immintrin.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "emulator/engine/cpu.hpp"
#include "emulator/engine/kernels/integer/integer_tiles.hpp"

// What follows is compiled for the instruction set,
#include "formats/support/vectors/target_avx2.inc"
// these templates among it.
#include "emulator/engine/kernels/integer/integer_tile.hpp"
#include "formats/support/vectors/avx2.hpp"

namespace guardbit::emulator::integers {
namespace {
constexpr IntegerTiles of_this_set = tiles<Factors::words, WordDots<formats::vectors::Avx2>>;
}  // namespace
}  // namespace guardbit::emulator::integers

#include "formats/support/vectors/target_end.inc"

namespace guardbit::emulator {

const IntegerTiles* integer_tiles_avx2() {
  return cpu::features().avx2_kernels ? &integers::of_this_set : nullptr;
}

}  // namespace guardbit::emulator
