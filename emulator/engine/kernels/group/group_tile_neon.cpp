#include "emulator/engine/kernels/group/group_tile.hpp"

// All that a template below could instantiate comes before the target, so that no other code of
// this program becomes code for dot products.
#include <arm_neon.h>

#include <cfenv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "emulator/engine/cpu.hpp"

// What follows is compiled for the instruction set,
#include "formats/support/vectors/target_neondots.inc"
// these templates among it.
#include "emulator/engine/kernels/group/group_blocks.hpp"
#include "formats/support/vectors/neon.hpp"

namespace guardbit::emulator::groups {
namespace {
constexpr auto find = functions_of<formats::vectors::Neon>;
}  // namespace
}  // namespace guardbit::emulator::groups

#include "formats/support/vectors/target_end.inc"

namespace guardbit::emulator::groups {
Functions functions_neon(int places_of_group) {
  return cpu::features().dot_products ? find(places_of_group) : Functions{};
}
}  // namespace guardbit::emulator::groups
