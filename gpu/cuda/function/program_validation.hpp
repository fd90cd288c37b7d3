#pragma once

#include <cstdint>
#include <string>
#include <vector>

// CUDA's functions of two FP32 numbers, compared with their programs on the device.
namespace guardbit::gpu {

struct ProgramMismatch {
  std::uint32_t x = 0, y = 0, device = 0, model = 0;
};

struct ProgramReport {
  std::string function;
  std::uint64_t compared = 0, mismatches = 0;
  /// one that differs
  ProgramMismatch example;
};

/// Of the first `pairs` of emulator::argument_pair.
std::vector<ProgramReport> validate_programs(std::uint64_t pairs);

}  // namespace guardbit::gpu
