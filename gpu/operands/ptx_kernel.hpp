#pragma once

#include <string>

#include "gpu/operands/tensor_core_instruction.hpp"

// Kernels as PTX text, for the driver to compile.
namespace guardbit::gpu {

/// Name of the entry of a module that ptx_kernel writes.
inline constexpr const char* ptx_kernel_entry = "run";

/// A PTX module for the driver to compile: entry `run(a, b, c, e, d)` takes global addresses of
/// packed images (packing.hpp) and executes an mma.sync or mma.sp once for each warp and image.
/// formats::Error for other units and for 64-bit operands.
std::string ptx_kernel(const TensorCoreInstruction& instruction);

}  // namespace guardbit::gpu
