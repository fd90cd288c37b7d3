#pragma once

#include "gpu/cuda/device/device_operands.hpp"

// Elements of operands as kernels read, write and compare them.
namespace guardbit::gpu {

__device__ inline std::uint64_t load_element(const DeviceElements& x, std::size_t index) {
  switch (x.bytes) {
    case 1: return static_cast<const std::uint8_t*>(x.data)[index];
    case 2: return static_cast<const std::uint16_t*>(x.data)[index];
    case 4: return static_cast<const std::uint32_t*>(x.data)[index];
    default: return static_cast<const std::uint64_t*>(x.data)[index];
  }
}

__device__ inline void store_element(const DeviceElements& x, std::size_t index,
                                     std::uint64_t word) {
  switch (x.bytes) {
    case 1: static_cast<std::uint8_t*>(x.data)[index] = static_cast<std::uint8_t>(word); break;
    case 2: static_cast<std::uint16_t*>(x.data)[index] = static_cast<std::uint16_t>(word); break;
    case 4: static_cast<std::uint32_t*>(x.data)[index] = static_cast<std::uint32_t>(word); break;
    default: static_cast<std::uint64_t*>(x.data)[index] = word; break;
  }
}

/// The unit's own result of output (i N + j = `output`) of execution `t`.
__device__ inline std::uint64_t load_result(const DeviceResults& results, int result_bits,
                                            std::int64_t t, int output, int outputs) {
  const auto each = static_cast<std::uint32_t>(results.executions_per_image);
  const std::uint32_t image = static_cast<std::uint32_t>(t) / each;  // 64 bits would be slow
  const auto slot = static_cast<int>(static_cast<std::uint32_t>(t) - image * each);
  const std::int64_t byte =
      std::int64_t{image} * results.bytes + results.offsets[slot * outputs + output] / 8;
  const char* const at = static_cast<const char*>(results.images) + byte;
  if (result_bits == 16) return *reinterpret_cast<const std::uint16_t*>(at);
  if (result_bits == 32) return *reinterpret_cast<const std::uint32_t*>(at);
  return *reinterpret_cast<const std::uint64_t*>(at);
}

/// A thread's verdicts, added to the tally once: atomics on one address are slower than the models.
struct Verdicts {
  unsigned outputs = 0, mismatches = 0;
  unsigned long long first = ~0ULL;

  __device__ void add(bool mismatch, unsigned long long index) {
    ++outputs;
    if (!mismatch) return;
    ++mismatches;
    first = min(first, index);
  }
  /// Every thread of the block takes part.
  __device__ void report(DeviceTally* tally) const {
    __shared__ unsigned compared;
    if (threadIdx.x == 0) compared = 0;
    __syncthreads();
    const unsigned in_warp = __reduce_add_sync(0xFFFFFFFFU, outputs);
    if (threadIdx.x % 32 == 0) atomicAdd(&compared, in_warp);
    __syncthreads();
    if (threadIdx.x == 0) atomicAdd(&tally->outputs, static_cast<unsigned long long>(compared));
    if (mismatches == 0) return;
    atomicAdd(&tally->mismatches, static_cast<unsigned long long>(mismatches));
    atomicMin(&tally->first, first);
  }
};

/// Counts the events of a thread's output; every thread of the warp takes part.
__device__ inline void add_events(DeviceCoverage* coverage, std::uint32_t events) {
  for (int i = 0; i < 32; ++i) {
    const unsigned happened = __ballot_sync(0xFFFFFFFFU, (events >> i & 1U) != 0);
    if (threadIdx.x % 32 == 0 && happened != 0)
      atomicAdd(&coverage->counts[i], static_cast<unsigned long long>(__popc(happened)));
  }
}

}  // namespace guardbit::gpu
