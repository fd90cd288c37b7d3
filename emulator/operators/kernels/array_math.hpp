#pragma once

#include <span>

#include "emulator/functions/cuda/cuda_doubles.hpp"
#include "emulator/functions/cuda/cuda_exponentials.hpp"
#include "emulator/functions/cuda/cuda_logarithms.hpp"
#include "emulator/functions/numbers/host_number.hpp"

// Functions of CUDA on FP32 numbers, one by one and in arrays.
namespace guardbit::emulator::operators {

inline float exp_of(float x) { return cuda_math::expf(HostNumber(x)).number(); }
inline float log_of(float x) { return cuda_math::logf(HostNumber(x)).number(); }
inline float reciprocal_root_of(float x) { return mufu::rsqrt_approx(HostNumber(x)).number(); }
inline float approximate_reciprocal_of(float x) { return mufu::rcp_approx(HostNumber(x)).number(); }

// The same of FP64.
inline double exp_of(double x) { return cuda_math::exp(x); }
inline double log_of(double x) { return cuda_math::log(x); }
inline double reciprocal_root_of(double x) { return cuda_math::rsqrt(x); }

/// expf of each, by the kernel of the CPU's vectors. NaNs become 0x7fffffff.
void exp_in_place(std::span<float> numbers);
void exp_in_place(std::span<double> numbers);
/// The IEEE square root of each.
void square_root_in_place(std::span<float> numbers);

}  // namespace guardbit::emulator::operators
