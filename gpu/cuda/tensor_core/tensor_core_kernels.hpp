#pragma once

#include <span>
#include <string>
#include <string_view>

#include "formats/support/error.hpp"
#include "gpu/operands/tensor_core_instruction.hpp"
#include "gpu/screening/screen_log.hpp"

// The table of kernels that the generator of wrappers (gpu/wrappers) writes.
namespace guardbit::gpu {

/// Device addresses of the packed operands of `images` runs (one warp or warpgroup each); see
/// packing.hpp. Operands that an instruction does not take are null. Images lie one after the
/// other, all addresses are multiples of 256 bytes.
struct DeviceImages {
  const void *a = nullptr, *b = nullptr, *c = nullptr, *e = nullptr;
  const void *a_scale = nullptr, *b_scale = nullptr;
  void* d = nullptr;
  /// any number
  int images = 0;
  /// of one image
  int a_bytes = 0, b_bytes = 0, c_bytes = 0, d_bytes = 0;

  // A screening (gpu/cuda/screening/): `workers` warps or warpgroups take every image so many times
  // and compare the results with `expected`, images like d; d is scratch memory for each worker
  // then.
  const void* expected = nullptr;
  ScreenLog* log = nullptr;
  int workers = 0, repetitions = 1;
  /// Of a warpgroup only the warp with this number counts its executions; -1: all do.
  int quarter = -1;
  /// only where faults are compiled in (launch.cuh)
  const Fault* fault = nullptr;
};

using Kernel = void (*)(const DeviceImages&);

/// A generated file and its kernels, in the order of its instructions.
struct KernelGroup {
  std::string_view name;
  std::span<const Kernel> (*kernels)();
};

/// Every generated file of the architecture that this program was compiled for.
std::span<const KernelGroup> kernel_groups();

/// formats::Error when the instruction belongs to another architecture's table.
inline Kernel kernel_of(const TensorCoreInstruction& instruction) {
  if (instruction.arch == tensor_core_instructions().front().arch)
    for (const KernelGroup& group : kernel_groups())
      if (group.name == instruction.group)
        return group.kernels()[static_cast<std::size_t>(instruction.index)];
  throw formats::Error("gpu wrappers", "'" + std::string(instruction.name) + "' of " +
                                           std::string(instruction.arch) + " was not compiled");
}

}  // namespace guardbit::gpu
