#pragma once

#include <span>

#include "emulator/functions/kernels/function_kernels.hpp"

namespace guardbit::emulator::kernels {

/// Empty where the library was built for another processor.
extern const std::span<const FunctionKernel> avx2, avx512;

}  // namespace guardbit::emulator::kernels
