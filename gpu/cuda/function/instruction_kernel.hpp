#pragma once

#include <string>

// Kernels around instructions of PTX that are functions of numbers, as text for the driver.
namespace guardbit::gpu {

struct FunctionInstruction {
  std::string name;
  /// of operands and result
  int bits = 32;
  int operands = 1;
  /// two of 16 bits in a register
  bool is_packed = false;
};

/// The text of a kernel `compute(d, x, y, z, count, first, mask, places)` that executes the
/// instruction, a thread each: thread i of `count` computes d[i] from operands number (i + first) &
/// mask. Where `places` is not null, the first thread of each warp notes there where it runs: 256 *
/// multiprocessor + warp.
std::string instruction_kernel(const FunctionInstruction& instruction);

}  // namespace guardbit::gpu
