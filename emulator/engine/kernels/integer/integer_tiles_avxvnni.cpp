#include <immintrin.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "emulator/engine/cpu.hpp"
#include "emulator/engine/kernels/integer/integer_tiles.hpp"

// What follows is compiled for the instruction set,
#include "formats/support/vectors/target_avxvnni.inc"
// these templates among it.
#include "emulator/engine/kernels/integer/integer_tile.hpp"
#include "formats/support/vectors/avx2.hpp"

namespace guardbit::emulator::integers {
namespace {

/// Types of its own, whose templates are compiled for AVX-VNNI.
struct AvxVnni : formats::vectors::Avx2 {};

/// Unsigned by signed bytes. VPDPBUSD.
template <bool b_is_unsigned>
struct ByteDots {
  using Isa = AvxVnni;
  using Words = Isa::Words;
  static Words ones() { return formats::vectors::fill<Words>(0x01010101); }
  [[gnu::always_inline]] static Words add(const Words& sums, const Words& a, const Words& b) {
    using formats::vectors::as;
    const auto x = as<__m256i>(b_is_unsigned ? b : a), y = as<__m256i>(b_is_unsigned ? a : b);
    return as<Words>(_mm256_dpbusd_avx_epi32(as<__m256i>(sums), x, y));
  }
};

constexpr IntegerTiles of_this_set =
    tiles<Factors::unsigned_and_signed, ByteDots<false>, ByteDots<true>>;
}  // namespace
}  // namespace guardbit::emulator::integers

#include "formats/support/vectors/target_end.inc"

namespace guardbit::emulator {

const IntegerTiles* integer_tiles_avxvnni() {
  return cpu::features().avx_vnni ? &integers::of_this_set : nullptr;
}

}  // namespace guardbit::emulator
