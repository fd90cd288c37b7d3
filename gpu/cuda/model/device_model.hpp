#pragma once

#include <cstdint>

#include "emulator/model/batch.hpp"
#include "emulator/model/instruction.hpp"
#include "gpu/cuda/device/device_operands.hpp"

// The models as kernels. The reference is emulator::dot itself, compiled for the device; it takes
// any instruction. The model kernels do the same with the operands of a tile decoded once in shared
// memory; every validation compares them with the reference.
namespace guardbit::gpu {

/// Columns of an execution that a block of threads takes at once.
inline constexpr int columns_per_tile = 64;

/// How a model kernel takes an instruction: which stored elements belong to which dot step, in
/// order.
struct ModelInstruction {
  emulator::MatrixInstruction instruction{};
  emulator::Modifiers modifiers{};
  /// positions of each step's products
  int begin[5] = {}, count[5] = {};
  /// the stored element at each position
  std::uint8_t order[emulator::max_k] = {};
  /// positions
  int ordered = 0;
  /// step
  int first_dot = 0;
  /// b1: a position holds 32 elements
  bool packed_bits = false;
};

/// Does the model kernel take the instruction? (The reference takes every instruction.)
bool model_accepts(const emulator::MatrixInstruction& instruction);

ModelInstruction model_instruction(const emulator::MatrixInstruction& instruction,
                                   const emulator::Modifiers& modifiers);

/// Computes every output by the model kernel. Where `results` has images, compares and adds to
/// `tally`; where `d` has data, stores the codes [T,M,N]. formats::Error for what CUDA refuses.
void run_model(const ModelInstruction& model, const DeviceOperands& operands,
               const DeviceResults& results, DeviceTally* tally, const DeviceElements& d = {});

/// A yardstick: dot products of the same shapes by plain FP32 fused multiply-adds, whose operands
/// are merely read as numbers. Results are thrown away.
void run_plain_fma(const ModelInstruction& model, const DeviceOperands& operands);

/// The same as run_model by the reference; `coverage`, where given, counts events.
void run_reference(const ModelInstruction& model, const DeviceOperands& operands,
                   const DeviceResults& results, DeviceTally* tally, const DeviceElements& d = {},
                   DeviceCoverage* coverage = nullptr);

}  // namespace guardbit::gpu
