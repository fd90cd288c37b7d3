#pragma once

#include <optional>

#include "gpu/cuda/product/device_packed_operand.hpp"
#include "gpu/model/offset_accumulator.hpp"

// The instances of the tuned kernel, one for each kind of arithmetic (multiply.cuh).
namespace guardbit::gpu {

/// A product ready to start: packed operands, and the codes for what the chain leaves to the model.
struct MultiplyArguments {
  const std::byte *a_packed, *b_packed;
  /// [tiles, stages]: see PackArguments
  const unsigned *a_low, *b_low;
  /// codes, row-major; c may be null
  const std::byte *a, *b, *c;
  std::byte* d;
  int m, n, k;
  int tiles_m, tiles_n, stages;
  OffsetRule rule;
  TunedInstruction instruction;
};

/// One instance of the kernel of multiply.cuh.
struct TunedKernel {
  /// how it wants its operands
  PackedShape a, b;
  /// of D per thread block
  int rows, columns;
  /// that a thread block needs
  int shared_bytes;
  /// formats::Error when the launch fails
  void (*launch)(const MultiplyArguments&);
};

/// The instance for an instruction. Each file of instances has those of one kind of result.
TunedKernel tuned_kernel(const TunedInstruction& instruction);
std::optional<TunedKernel> fp32_kernel(const TunedInstruction& instruction);
std::optional<TunedKernel> e8m13_kernel(const TunedInstruction& instruction);
std::optional<TunedKernel> fp16_kernel(const TunedInstruction& instruction);
std::optional<TunedKernel> composed_kernel(const TunedInstruction& instruction);

}  // namespace guardbit::gpu
