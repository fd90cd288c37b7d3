#pragma once

#include <cstddef>

// Adam's steps, many elements at a time.
namespace guardbit::emulator::operators {

/// The step of fused Adam without amsgrad: weights decay apart from the gradient, or not at all.
struct AdamVectors {
  float step_size, beta1, beta2, eps, root_of_correction;
  /// lr times the weight decay; 0: none
  float decay;
  const float *parameter, *gradient, *first, *second;
  /// what becomes of them; may be the same memory
  float *new_parameter, *new_first, *new_second;
};

namespace kernels {

/// Null where the library was built for another processor. NaNs become the unit's.
using AdamKernel = void (*)(const AdamVectors& of, std::size_t count);
extern const AdamKernel adam_avx2, adam_avx512;

}  // namespace kernels

/// The kernel of the widest instruction set that the CPU has and GUARDBIT_CPU allows, or null.
kernels::AdamKernel find_adam_kernel();

}  // namespace guardbit::emulator::operators
