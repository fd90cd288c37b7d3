#pragma once

#include <string>

#include "gpu/batch.hpp"

namespace guardbit::gpu {

/// The current CUDA device and the toolkit this was built with, as a capture names them.
struct Device {
  std::string name;     ///< "NVIDIA H200"
  std::string driver;   ///< kernel driver, "580.159.04"; empty where the system does not say
  std::string toolkit;  ///< "13.0"
};

/// formats::Error, one line, when there is no device, its driver is too old, or it cannot run
/// sm_90a code.
Device require_device();

/// Packs the inputs, runs the instruction on the current CUDA device, and fills batch.d.
/// formats::Error for what CUDA refuses.
void run_on_tensor_core(const TensorCoreInstruction& row, Batch& batch);

}  // namespace guardbit::gpu
