#pragma once

#include <array>
#include <cstdint>

namespace guardbit::emulator {

/// The options of nvcc that change what CUDA's functions compute.
enum class CompileMode : std::uint8_t {
  /// none: subnormal numbers count, division and square root round correctly
  standard,
  /// -ftz=true: steps take subnormal operands as zeros and give zeros for subnormal results
  ftz,
  /// -use_fast_math: that, division and square root by the special function unit, and intrinsics
  /// for the functions that have one
  fast,
};
constexpr auto words(CompileMode) { return std::array{"default", "ftz", "fast"}; }

}  // namespace guardbit::emulator
