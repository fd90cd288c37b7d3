#include <arm_neon.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "emulator/engine/cpu.hpp"
#include "emulator/engine/kernels/integer/integer_tiles.hpp"

// What follows is compiled for the instruction set,
#include "formats/support/vectors/target_neondots.inc"
// these templates among it.
#include "emulator/engine/kernels/integer/integer_tile.hpp"
#include "formats/support/vectors/neon.hpp"

namespace guardbit::emulator::integers {
namespace {

/// Signed bytes.
struct SignedDots {
  using Isa = formats::vectors::Neon;
  using Words = Isa::Words;
  static Words ones() { return formats::vectors::fill<Words>(0x01010101); }
  [[gnu::always_inline]] static Words add(const Words& sums, const Words& a, const Words& b) {
    using formats::vectors::as;
    return Isa::ByteDots::add(sums, as<Isa::Bytes>(a), as<Isa::Bytes>(b));
  }
};

constexpr IntegerTiles of_this_set = tiles<Factors::signed_bytes, SignedDots>;

}  // namespace
}  // namespace guardbit::emulator::integers

#include "formats/support/vectors/target_end.inc"

namespace guardbit::emulator {

const IntegerTiles* integer_tiles_neondots() {
  return cpu::features().dot_products ? &integers::of_this_set : nullptr;
}

}  // namespace guardbit::emulator
