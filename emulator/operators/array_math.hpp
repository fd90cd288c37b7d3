#pragma once

#include <span>

#include "emulator/functions/cuda/cuda_exponentials.hpp"
#include "emulator/functions/cuda/cuda_logarithms.hpp"
#include "emulator/functions/numbers/host_number.hpp"

// Functions of CUDA on arrays of FP32 numbers, in place.
namespace guardbit::emulator::operators {

inline float exp_of(float x) { return cuda_math::expf(HostNumber(x)).number(); }
inline float log_of(float x) { return cuda_math::logf(HostNumber(x)).number(); }
inline float reciprocal_root_of(float x) { return mufu::rsqrt_approx(HostNumber(x)).number(); }

inline void exp_in_place(std::span<float> numbers) {
  for (float& x : numbers) x = exp_of(x);
}

}  // namespace guardbit::emulator::operators
