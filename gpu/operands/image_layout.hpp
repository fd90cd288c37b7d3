#pragma once

#include "gpu/operands/operand_images.hpp"
#include "gpu/operands/tensor_core_instruction.hpp"

// Layouts of packed operands, for every kind of instruction.
namespace guardbit::gpu {

/// formats::Error when a fragment map names an element twice.
ImageLayout layout_images(const TensorCoreInstruction& instruction);

}  // namespace guardbit::gpu
