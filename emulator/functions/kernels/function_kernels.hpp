#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

// Code for functions of one FP32 number or two that takes many at a time, for each instruction set:
// the same bits as the reference.
namespace guardbit::emulator {

struct FunctionKernel {
  /// of the function in the catalogue
  std::string_view name;
  /// Codes; y is null for a function of one number. `results` may be x or y.
  void (*run)(const std::uint32_t* x, const std::uint32_t* y, std::uint32_t* results,
              std::size_t count) = nullptr;
};

/// The kernels of an instruction set: `avx512`, `avx2`; of `portable` there are none, all functions
/// run one by one on the host's own units.
struct FunctionEngine {
  std::string_view name;
  std::span<const FunctionKernel> kernels;
};

namespace kernels {

/// Empty where the library was built for another processor.
extern const std::span<const FunctionKernel> avx2, avx512;

}  // namespace kernels

/// Those that the CPU has and GUARDBIT_CPU allows, the widest first; the last one is `portable`.
std::span<const FunctionEngine> function_engines();

/// An engine's kernel for the function of that name, or null.
const FunctionKernel* find_kernel(const FunctionEngine& engine, std::string_view name);

/// The function of as many numbers as there are results; y is empty for a function of one number.
/// `results` may be x or y.
void run_on_numbers(const FunctionKernel& kernel, std::span<const float> x,
                    std::span<const float> y, std::span<float> results);

}  // namespace guardbit::emulator
