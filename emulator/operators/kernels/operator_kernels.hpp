#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "emulator/operators/kernels/parameters.hpp"

// Code for pointwise operators that takes many numbers at a time, for each instruction set: the
// same bits as the table's `run`, but for those of NaNs that become the unit's.
namespace guardbit::emulator::operators {

struct PointwiseKernel {
  /// of the operator in the table
  std::string_view name;
  /// y is null for an operator of one number. `results` may be x or y.
  void (*run)(const float* x, const float* y, const Parameters& parameters, float* results,
              std::size_t count) = nullptr;
};

namespace kernels {

/// Empty where the library was built for another processor.
extern const std::span<const PointwiseKernel> avx2, avx512;

}  // namespace kernels

/// The kernel of the widest instruction set that the CPU has and GUARDBIT_CPU allows, or null.
const PointwiseKernel* find_pointwise_kernel(std::string_view name);

}  // namespace guardbit::emulator::operators
