#include "emulator/engine/kernels/group/group_tile.hpp"

// All that a template below could instantiate comes before the target, so that no other code of
// this program becomes AVX2 code.
#include <immintrin.h>

#include <cfenv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "emulator/engine/cpu.hpp"

// What follows is compiled for the instruction set,
#include "formats/support/vectors/target_avx2.inc"
// these templates among it.
#include "emulator/engine/kernels/group/group_blocks.hpp"
#include "formats/support/vectors/avx2.hpp"

namespace guardbit::emulator::groups {
namespace {
constexpr auto find = functions_of<formats::vectors::Avx2>;
}  // namespace
}  // namespace guardbit::emulator::groups

#include "formats/support/vectors/target_end.inc"

namespace guardbit::emulator::groups {
Functions functions_avx2(int places_of_group) {
  return cpu::features().avx2_kernels ? find(places_of_group) : Functions{};
}
}  // namespace guardbit::emulator::groups
