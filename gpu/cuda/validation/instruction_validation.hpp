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

namespace guardbit::gpu {

/// How much of a row is compared.
struct ValidationPlan {
  std::uint64_t outputs = 0;            ///< over all families, rounded up to whole launches
  std::uint64_t reference_outputs = 0;  ///< of each family, judged by emulator::dot as well
  std::uint64_t seed = 0;
  std::string_view family;  ///< one family's name; empty: all the row has
};

struct FamilyReport {
  std::string_view name;
  std::uint64_t outputs = 0, mismatches = 0;
  emulator::Coverage coverage;  ///< of the outputs that the reference judged
};

struct InstructionReport {
  std::uint64_t outputs = 0, mismatches = 0;
  std::uint64_t reference_outputs = 0, reference_mismatches = 0;
  double plain_fma_seconds = 0;  ///< of as many dot products by FP32 multiply-adds; 0: not measured
  ValidationSeconds seconds;
  std::vector<FamilyReport> families;
  std::vector<std::string_view> never;  ///< events that the row can show and no family showed
  std::optional<Batch> mismatch;  ///< the first execution that differed, with the device's results
  bool interrupted = false;
};

/// Compares the tensor core with the model family by family. `goes_on(outputs done)` is asked
/// between launches; false ends the row early. formats::Error for a family the row does not have.
InstructionReport validate_instruction(const TensorCoreInstruction& instruction,
                                       const emulator::MatrixInstruction& model,
                                       const ValidationPlan& plan,
                                       const std::function<bool(std::uint64_t)>& goes_on);

/// A smaller batch that still differs: one output, with as many operands zero as the difference
/// survives. Executes the instruction again for every attempt.
Batch reduce_mismatch(const TensorCoreInstruction& instruction,
                      const emulator::MatrixInstruction& model, const Batch& batch);

}  // namespace guardbit::gpu
