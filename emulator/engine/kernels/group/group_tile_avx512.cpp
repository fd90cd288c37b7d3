#include "emulator/engine/kernels/group/group_tile.hpp"

// All that a template below could instantiate comes before the pragma, so that no other code of
// this program becomes AVX-512 code.
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

// GCC 12's own headers leave the operand of _mm512_undefined unset, and warn of it.
#pragma GCC diagnostic ignored "-Wuninitialized"
#if defined(__clang__)
#pragma clang attribute push(                                                     \
    __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,fma"))), \
    apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,fma")
#endif

#include "emulator/engine/kernels/group/group_blocks.hpp"
#include "formats/support/vectors/avx512.hpp"

namespace guardbit::emulator::groups {
namespace {
constexpr auto find = functions_of<formats::vectors::Avx512>;
}  // namespace
}  // namespace guardbit::emulator::groups

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

namespace guardbit::emulator::groups {
Functions functions_avx512(int places_of_group) {
  const cpu::Features& cpu = cpu::features();
  return cpu.avx512_kernels && cpu.avx512_vnni ? find(places_of_group) : Functions{};
}
}  // namespace guardbit::emulator::groups

#else

namespace guardbit::emulator::groups {
Functions functions_avx512(int) { return {}; }
}  // namespace guardbit::emulator::groups

#endif
