#pragma once

#include "emulator/engine/cpu.hpp"

// Loops over rows of numbers, compiled for the CPU's vectors.
namespace guardbit::emulator::operators {

namespace detail {

#if defined(__x86_64__)
template <auto function, class... Arguments>
[[gnu::target("avx2,fma"), gnu::flatten]] auto on_x86(Arguments... arguments) {
  return function(arguments...);
}
#endif

}  // namespace detail

/// What the function gives, whose text is compiled with all that it calls for AVX2 where the CPU
/// has it: loops run in vectors, and fused steps are one instruction rather than a call. Bits are
/// the same, because nothing is contracted or reordered.
template <auto function, class... Arguments>
auto vectorised(Arguments... arguments) {
#if defined(__x86_64__)
  if (cpu::features().avx2_kernels) return detail::on_x86<function>(arguments...);
#endif
  return function(arguments...);
}

}  // namespace guardbit::emulator::operators
