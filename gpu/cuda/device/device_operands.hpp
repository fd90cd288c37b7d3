#pragma once

#include <cstddef>
#include <cstdint>

// Operands in device memory, as kernels of the model take them.
namespace guardbit::gpu {

/// Elements of an operand in device memory, one per container of 1, 2, 4 or 8 bytes.
struct DeviceElements {
  void* data = nullptr;
  int bytes = 0;
};

/// `executions` executions of one instruction in device memory, as words (register_words.hpp),
/// row-major: a and e [T,M,stored K], b [T,K,N], c [T,M,N], a_scale [T,M,scales], b_scale
/// [T,scales,N].
struct DeviceOperands {
  std::int64_t executions = 0;
  DeviceElements a, b, c, e, a_scale, b_scale;
};

/// Where the results of a device's matrix unit lie: images of `bytes` bytes, of
/// `executions_per_image` executions each; `offsets` [executions_per_image][M][N] gives each
/// result's first bit.
struct DeviceResults {
  const void* images = nullptr;
  const std::int64_t* offsets = nullptr;
  int bytes = 0;
  int executions_per_image = 1;
};

/// What a comparison found; adds up over launches.
struct DeviceTally {
  unsigned long long outputs = 0;
  unsigned long long mismatches = 0;
  /// smallest index of a mismatch in the launch: (t M + i) N + j
  unsigned long long first = ~0ULL;
};

/// In how many outputs each event happened (gpu/validation/coverage.hpp).
struct DeviceCoverage {
  unsigned long long counts[32] = {};
};

}  // namespace guardbit::gpu
