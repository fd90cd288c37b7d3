#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

#include "emulator/functions/argument_pairs.hpp"
#include "emulator/functions/function_digest.hpp"
#include "gpu/cuda/function/device_functions.hpp"

// The kernel that takes a function over all its inputs.
namespace guardbit::gpu {

inline constexpr unsigned function_block = 256;
inline constexpr unsigned function_blocks = 132 * 16;

/// `f` gives the result's code of an input's number.
template <class Function>
__global__ void __launch_bounds__(function_block)
    sum_digests(Function f, std::uint64_t count, FunctionDigests* digests) {
  const std::uint64_t threads = std::uint64_t{gridDim.x} * function_block;
  std::uint64_t whole = 0, quick = 0;
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * function_block + threadIdx.x; i < count;
       i += threads) {
    const std::uint64_t share = emulator::function_digest_share(i, f(i));
    whole += share;
    if (i % emulator::quick_digest_stride == 0) quick += share;
  }
  using Word = unsigned long long;
  atomicAdd(reinterpret_cast<Word*>(&digests->whole), Word{whole});
  atomicAdd(reinterpret_cast<Word*>(&digests->quick), Word{quick});
}

template <class Function>
__global__ void __launch_bounds__(function_block)
    write_results(Function f, const std::uint64_t* numbers, std::uint32_t count,
                  std::uint32_t* results) {
  const std::uint32_t i = blockIdx.x * function_block + threadIdx.x;
  if (i < count) results[i] = f(numbers[i]);
}

template <class Function>
DeviceFunction device_function(const char* name, int input_bits, int operands, Function f) {
  DeviceFunction entry;
  entry.name = name;
  entry.input_bits = input_bits;
  entry.operands = operands;
  entry.digests = [f](std::uint64_t count, FunctionDigests* digests) {
    sum_digests<<<function_blocks, function_block>>>(f, count, digests);
  };
  entry.results = [f](const std::uint64_t* numbers, std::uint32_t count, std::uint32_t* results) {
    write_results<<<(count + function_block - 1) / function_block, function_block>>>(
        f, numbers, count, results);
  };
  return entry;
}

/// Of one FP32 number.
template <class Function>
DeviceFunction unary(const char* name, Function f) {
  return device_function(name, 32, 1, [f] __device__(std::uint64_t number) {
    const float y = f(__uint_as_float(static_cast<std::uint32_t>(number)));
    return emulator::with_one_nan(__float_as_uint(y));
  });
}

/// Of two, of the pair of that number.
template <class Function>
DeviceFunction binary(const char* name, Function f) {
  return device_function(name, 32, 2, [f] __device__(std::uint64_t number) {
    const emulator::ArgumentPair pair = emulator::argument_pair(number);
    const float y = f(__uint_as_float(pair.x), __uint_as_float(pair.y));
    return emulator::with_one_nan(__float_as_uint(y));
  });
}

/// Of the tuple of that number; `f` gives the result's code.
template <class Function>
DeviceFunction of_tuple(const char* name, int operands, Function f) {
  return device_function(name, 32, operands, [f] __device__(std::uint64_t number) {
    return f(emulator::argument_tuple(number));
  });
}

__device__ inline float number_of(std::uint32_t code) { return __uint_as_float(code); }
__device__ inline std::uint32_t code_of(float x) {
  return emulator::with_one_nan(__float_as_uint(x));
}
__device__ inline std::uint32_t code_of(int n) { return static_cast<std::uint32_t>(n); }

/// Of one FP16 number; the results' codes are taken as they are.
template <class Function>
DeviceFunction of_half(const char* name, Function f) {
  return device_function(name, 16, 1, [f] __device__(std::uint64_t number) {
    const __half y = f(__ushort_as_half(static_cast<unsigned short>(number)));
    return static_cast<std::uint32_t>(__half_as_ushort(y));
  });
}

/// Of one BF16 number.
template <class Function>
DeviceFunction of_bfloat16(const char* name, Function f) {
  return device_function(name, 16, 1, [f] __device__(std::uint64_t number) {
    const __nv_bfloat16 y = f(__ushort_as_bfloat16(static_cast<unsigned short>(number)));
    return static_cast<std::uint32_t>(__bfloat16_as_ushort(y));
  });
}

/// Of the high word of an FP64 number whose low word is 0: the high word of the result.
template <class Function>
DeviceFunction of_high_word(const char* name, Function f) {
  return device_function(name, 32, 1, [f] __device__(std::uint64_t number) {
    const double y = f(__longlong_as_double(static_cast<long long>(number << 32)));
    const auto code = static_cast<std::uint64_t>(__double_as_longlong(y));
    return static_cast<std::uint32_t>(code >> 32) ^ static_cast<std::uint32_t>(code);
  });
}

}  // namespace guardbit::gpu
