#pragma once

#include <cstdint>
#include <optional>

#include "gpu/cuda/model/device_model.hpp"
#include "gpu/cuda/tensor_core/device_staging.hpp"
#include "gpu/validation/coverage.hpp"

// Comparisons of a device's results with the model's, on the device.
namespace guardbit::gpu {

/// Seconds that the device spent on each part of a comparison.
struct ValidationSeconds {
  double generate = 0, pack = 0, tensor_core = 0, model = 0, reference = 0;

  double total() const { return generate + pack + tensor_core + model + reference; }
  ValidationSeconds& operator+=(const ValidationSeconds& other);
};

/// What one launch over many executions found.
struct ValidationPart {
  std::uint64_t outputs = 0, mismatches = 0;
  std::uint64_t reference_outputs = 0, reference_mismatches = 0;
  /// of what the reference judged
  emulator::Coverage coverage;
  /// execution within the launch
  std::optional<std::int64_t> first_mismatch;
  ValidationSeconds seconds;
};

/// Compares the tensor core with the model, both on the device.
class Validator {
 public:
  /// About `outputs` outputs in a launch.
  Validator(const TensorCoreInstruction& instruction, const emulator::MatrixInstruction& model,
            std::int64_t outputs);

  std::int64_t executions() const { return staging_.executions(); }
  std::int64_t outputs() const { return executions() * instruction_.m * instruction_.n; }

  /// One launch over executions first, first + 1, … of a family. The model kernel, where it takes
  /// the instruction, judges every output; emulator::dot judges the first `reference_outputs` of
  /// them too, or all where there is no kernel.
  ValidationPart run(InputFamily family, std::uint64_t seed, std::int64_t first,
                     std::uint64_t reference_outputs);

  /// Seconds that plain FP32 fused multiply-adds take for the dot products of one launch, on
  /// operands converted beforehand: what arithmetic of the device's own would cost.
  double plain_fma_seconds();

  /// Execution `execution` of the last launch with the device's results.
  Batch read(std::int64_t execution) const { return staging_.read(execution); }

 private:
  const TensorCoreInstruction& instruction_;
  ModelInstruction model_;
  bool has_kernel_;
  Staging staging_;
  DeviceBuffer tallies_, coverage_;
  DeviceTimer timer_;
};

}  // namespace guardbit::gpu
