#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "tools/gpu/training/training_kernels.hpp"

namespace guardbit::tools::training {

/// TF32 keeps FP32's exponent and ten bits of its fraction.
__device__ inline float rounded_to_tf32(float x) {
  const std::uint32_t bits = __float_as_uint(x);
  if ((bits & 0x7f800000U) == 0x7f800000U) return x;
  return __uint_as_float((bits + 0xfffU + (bits >> 13 & 1U)) & ~0x1fffU);
}

__device__ inline float rounded(NumberFormat format, float x) {
  switch (format) {
    case NumberFormat::fp32: return x;
    case NumberFormat::tf32: return rounded_to_tf32(x);
    case NumberFormat::bf16: return __bfloat162float(__float2bfloat16_rn(x));
    case NumberFormat::fp16: return __half2float(__float2half_rn(x));
  }
  return x;
}

}  // namespace guardbit::tools::training
