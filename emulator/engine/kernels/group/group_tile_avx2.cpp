#include "emulator/engine/kernels/group/group_tile.hpp"

// All that a template below could instantiate comes before the pragma, so that no other code of
// this program becomes AVX2 code.
#include <cfenv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "emulator/engine/cpu.hpp"

#if defined(__x86_64__)
#include <immintrin.h>

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma")
#endif

#include "emulator/engine/kernels/group/group_blocks.hpp"
#include "formats/support/vectors/avx2.hpp"

namespace guardbit::emulator::groups {
namespace {
constexpr auto find = functions_of<formats::vectors::Avx2>;
}  // namespace
}  // namespace guardbit::emulator::groups

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

namespace guardbit::emulator::groups {
Functions functions_avx2(int places_of_group) {
  return cpu::features().avx2_kernels ? find(places_of_group) : Functions{};
}
}  // namespace guardbit::emulator::groups

#else

namespace guardbit::emulator::groups {
Functions functions_avx2(int) { return {}; }
}  // namespace guardbit::emulator::groups

#endif
