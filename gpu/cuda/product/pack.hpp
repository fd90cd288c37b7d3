#pragma once

#include <cstddef>

#include "gpu/cuda/product/device_packed_operand.hpp"
#include "gpu/model/offset_accumulator.hpp"

// Packing of operands for the tuned kernel, on the device.
namespace guardbit::gpu {

/// One operand on its way to the tuned kernel, in device memory.
struct PackArguments {
  /// A [lines, k] or B [k, lines], row-major containers
  const std::byte* codes;
  std::byte* packed;
  /// [tiles, stages]: the largest number of low factors in a line's block
  unsigned* low;
  int lines, k;
  int tiles, stages;
  /// of the codes
  formats::Format format;
  PackedShape shape;
  TunedInstruction instruction;
};

std::size_t packed_bytes(const PackArguments& p);

/// Starts packing; formats::Error when the launch fails.
void pack(const PackArguments& p);

}  // namespace guardbit::gpu
