#pragma once

#include "emulator/model/batch.hpp"
#include "emulator/model/instruction.hpp"
#include "gpu/cuda/device/device_operands.hpp"
#include "gpu/cuda/model/model_instruction.hpp"

// The models as kernels. The reference is emulator::dot itself, compiled for the device; it takes
// any instruction. The model kernels do the same with the operands of a tile decoded once in shared
// memory; every validation compares them with the reference.
namespace guardbit::gpu {

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
