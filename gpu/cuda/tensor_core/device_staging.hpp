#pragma once

#include <cstdint>

#include "gpu/cuda/device/device.hpp"
#include "gpu/cuda/device/device_operands.hpp"
#include "gpu/inputs/input_families.hpp"
#include "gpu/inputs/input_shape.hpp"
#include "gpu/operands/image_layout.hpp"
#include "gpu/operands/image_staging.hpp"
#include "gpu/operands/tensor_core_batch.hpp"
#include "gpu/operands/tensor_core_instruction.hpp"

// Operands that are made, packed and executed on the device, without the host.
namespace guardbit::gpu {

/// Operands and results of many executions of one instruction in device memory: generated there,
/// packed as the instruction's kernel reads them, executed, and left for a model to compare.
class Staging {
 public:
  /// Can the operands of that instruction be packed on the device? (Otherwise it can only be
  /// recorded.)
  static bool accepts(const TensorCoreInstruction& instruction);

  /// formats::Error when the device has too little memory.
  Staging(const TensorCoreInstruction& instruction, const emulator::MatrixInstruction& model,
          std::int64_t executions);

  /// Fills the operands of executions first, first + 1, … of a family (generated_inputs.hpp).
  void generate(InputFamily family, std::uint64_t seed, std::int64_t first);
  /// Copies a batch of as many executions to the device instead.
  void write(const Batch& batch);
  void pack();
  /// Runs the instruction; asynchronous, as all the above.
  void execute();

  DeviceOperands operands() const;
  DeviceResults results() const;
  std::int64_t executions() const { return executions_; }

  /// One execution, operands and the device's results.
  Batch read(std::int64_t execution) const;

 private:
  struct StagedOperand {
    DeviceBuffer elements, images, table;
    WordTable words;
    int container_bytes;
    /// elements
    std::int64_t per_image;
  };
  StagedOperand make_operand(const Format& type, const std::vector<std::int64_t>& offsets,
                             int bytes) const;
  StagedOperand make_scales(const std::vector<std::int64_t>& offsets, int bytes) const;
  StagedOperand staged(WordTable words, int container_bytes, int bytes, std::size_t elements) const;
  void pack(const StagedOperand& operand) const;

  const TensorCoreInstruction& instruction_;
  InputShape shape_;
  std::int64_t executions_;
  ImageLayout layout_;
  std::int64_t images_;
  StagedOperand a_, b_, c_, a_scale_, b_scale_;
  DeviceBuffer positions_, metadata_;
  WordTable metadata_words_;
  DeviceBuffer metadata_table_;
  DeviceBuffer results_, result_offsets_;
};

}  // namespace guardbit::gpu
