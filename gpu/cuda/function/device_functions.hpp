#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

// Functions as a device computes them: instructions of PTX, and CUDA's mathematics as nvcc compiles
// it.
namespace guardbit::gpu {

/// Digests of all results, and of every 65521st (emulator/functions/function_digest.hpp).
struct FunctionDigests {
  std::uint64_t whole = 0, quick = 0;
};

struct DeviceFunction {
  /// PTX's name or CUDA's
  std::string name;
  /// Inputs are numbered from 0 to 2^input_bits: by their codes, pairs by argument_pair.
  int input_bits = 32;
  int operands = 1;
  /// Adds the shares of the first `count` inputs to digests on the device.
  std::function<void(std::uint64_t count, FunctionDigests* digests)> digests;
  /// Results of inputs on the device.
  std::function<void(const std::uint64_t* numbers, std::uint32_t count, std::uint32_t* results)>
      results;
};

/// Instructions of PTX.
std::vector<DeviceFunction> ptx_functions();

/// CUDA's functions as nvcc compiles them without further options, with -ftz=true, and with
/// -use_fast_math.
std::vector<DeviceFunction> cuda_functions_default();
std::vector<DeviceFunction> cuda_functions_flushed();
std::vector<DeviceFunction> cuda_functions_fast();

}  // namespace guardbit::gpu
