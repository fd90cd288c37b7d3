#pragma once

// What the kernels of device_model.hpp share: threads, k's of stored elements, launches.

#include <cuda_runtime.h>

#include "emulator/model/mma.hpp"
#include "gpu/cuda/device/device.hpp"
#include "gpu/cuda/device/device_operands.cuh"
#include "gpu/cuda/model/device_model.hpp"
#include "gpu/operands/register_words.hpp"

namespace guardbit::gpu {

using namespace emulator;

inline constexpr int threads_per_tile = 128;

/// The k that stored element s of a row of A meets; `a_index` is its place among all of A.
__device__ inline int dense_k_of(const MatrixInstruction& instruction,
                                 const DeviceOperands& operands, std::size_t a_index, int s) {
  if (instruction.sparsity.group_elements == 0) return s;
  return dense_k(instruction.sparsity, s, static_cast<int>(load_element(operands.e, a_index)));
}

__device__ inline std::uint64_t operand_code(const Format& f, std::uint64_t word, bool negate) {
  return negated(f, word >> ignored_bits(f), negate);
}

/// A block of threads for each execution and each 64 columns of it.
inline dim3 tile_grid(const Shape& shape, const DeviceOperands& operands) {
  return {static_cast<unsigned>(operands.executions),
          static_cast<unsigned>((shape.n + columns_per_tile - 1) / columns_per_tile)};
}

/// Launches with a shared memory that may pass 48 KiB, which has to be asked for; errors name the
/// instruction.
template <class... Parameters, class... Arguments>
void launch(const ModelInstruction& model, void (*kernel)(Parameters...), dim3 grid,
            int shared_bytes, const Arguments&... arguments) {
  const std::string_view name = model.instruction.name;
  if (shared_bytes > 48 * 1024)
    check_cuda(
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes),
        name);
  kernel<<<grid, threads_per_tile, static_cast<std::size_t>(shared_bytes)>>>(arguments...);
  check_cuda(cudaGetLastError(), name);
}

}  // namespace guardbit::gpu
