#pragma once

#include <cstdint>
#include <vector>

#include "gpu/operands/tensor_core_instruction.hpp"

// Layouts of packed operands, for every kind of instruction.
namespace guardbit::gpu {

/// How an instruction's operands lie in the images that a kernel reads: one bit offset per element.
/// An image is what one warp or warpgroup takes: registers lane by lane, or a copy of memory (bits
/// that no element takes are not read, or read as zero by FP6 and FP4).
struct ImageLayout {
  /// four for the quad-pair instruction
  int executions_per_image;
  int a_bytes, b_bytes, c_bytes, d_bytes, e_bytes, a_scale_bytes, b_scale_bytes;
  /// [executions_per_image][rows][columns] -> bit offset
  std::vector<std::int64_t> a, b, c, d;
  /// [rows][groups] -> bit offset of the four metadata bits
  std::vector<std::int64_t> e;
  /// [rows][scales] -> bit offset
  std::vector<std::int64_t> a_scale;
  /// [scales][columns] -> bit offset
  std::vector<std::int64_t> b_scale;
};

/// formats::Error when a fragment map names an element twice.
ImageLayout layout_images(const TensorCoreInstruction& instruction);

}  // namespace guardbit::gpu
