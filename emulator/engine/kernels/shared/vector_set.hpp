#pragma once

#include <cstdint>

namespace guardbit::emulator {

/// The instruction sets that kernels are written for.
enum class VectorSet : std::uint8_t { avx512, avx2, neon };

// Kernels of other CPUs than the one this program is compiled for are not compiled:
// GUARDBIT_VECTORS in CMakeLists.txt.
#if defined(__x86_64__)
inline constexpr bool compiles_x86 = true, compiles_arm = false;
#elif defined(__aarch64__)
inline constexpr bool compiles_x86 = false, compiles_arm = true;
#else
inline constexpr bool compiles_x86 = false, compiles_arm = false;
#endif

}  // namespace guardbit::emulator
