#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/cuda/validation/validation.hpp"
#include "gpu/inputs/input_families.hpp"
#include "gpu/operands/tensor_core_batch.hpp"

// The validation of one instruction over all families of inputs.
namespace guardbit::gpu {

/// How much of an instruction is compared.
struct ValidationPlan {
  /// over all families, rounded up to whole launches
  std::uint64_t outputs = 0;
  /// of each family, judged by emulator::dot as well
  std::uint64_t reference_outputs = 0;
  std::uint64_t seed = 0;
  /// one family's name; empty: all the instruction has
  std::string_view family;
};

struct FamilyReport {
  std::string_view name;
  std::uint64_t outputs = 0, mismatches = 0;
  /// of the outputs that the reference judged
  emulator::Coverage coverage;
};

struct InstructionReport {
  std::uint64_t outputs = 0, mismatches = 0;
  std::uint64_t reference_outputs = 0, reference_mismatches = 0;
  /// of as many dot products by FP32 multiply-adds; 0: not measured
  double plain_fma_seconds = 0;
  ValidationSeconds seconds;
  std::vector<FamilyReport> families;
  /// events that the instruction can show and no family showed
  std::vector<std::string_view> never;
  /// the first execution that differed, with the device's results
  std::optional<Batch> mismatch;
  bool interrupted = false;
};

/// Compares the tensor core with the model family by family. `goes_on(outputs done)` is asked
/// between launches; false ends the instruction early. formats::Error for a family the instruction
/// does not have.
InstructionReport validate_instruction(const TensorCoreInstruction& instruction,
                                       const emulator::MatrixInstruction& model,
                                       const ValidationPlan& plan,
                                       const std::function<bool(std::uint64_t)>& goes_on);

/// A smaller batch that still differs: one output, with as many operands zero as the difference
/// survives. Executes the instruction again for every attempt.
Batch reduce_mismatch(const TensorCoreInstruction& instruction,
                      const emulator::MatrixInstruction& model, const Batch& batch);

}  // namespace guardbit::gpu
