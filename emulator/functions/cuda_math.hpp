#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "emulator/functions/special_function_unit.hpp"

// Functions of CUDA 13.0's mathematical library in single precision, as nvcc compiles them for
// sm_90 without further options: lists of steps on FP32, each rounded once, with the special
// function unit between them. Digests of all 2^32 results equal the hardware's (docs/FUNCTIONS.md).
// The host's own IEEE 754 operations take the steps, as in multiply-adds of CUDA cores;
// -ffp-contract=off keeps them apart. NaNs have no payload here.
namespace guardbit::emulator::cuda_math {

inline std::uint32_t bits(float x) { return std::bit_cast<std::uint32_t>(x); }
inline float number(std::uint32_t code) { return std::bit_cast<float>(code); }

inline float ex2(float x) { return number(mufu::ex2_ftz(bits(x))); }
inline float rcp(float x) { return number(mufu::rcp_ftz(bits(x))); }

/// c[0] x^(n-1) + ... + c[n-1] by Horner's rule, fused.
template <std::size_t n>
float polynomial(float x, const float (&c)[n]) {
  float sum = c[0];
  for (std::size_t i = 1; i < n; ++i) sum = std::fma(sum, x, c[i]);
  return sum;
}

/// 2^n 2^t, where n is an integer near x / log(2) that normal numbers have, and t the rest.
inline float expf(float x) {
  const float place = std::fma(x, 0x1.77313ap-8F, 0.5F);  // of n between -126 and 126
  const float share = place > 0 ? (place < 1 ? place : 1) : 0;
  // exact in double
  const auto step = static_cast<std::uint32_t>(252.0 * share);
  const float n = static_cast<float>(step) - 126;
  const float t = std::fma(x, 0x1.4ae0cp-26F, std::fma(x, 0x1.715476p+0F, -n));
  return ex2(t) * number((step + 1) << 23);
}

/// A polynomial near 0, else 1 - 2 / (e^(2|x|) + 1).
inline float tanhf(float x) {
  const float a = std::fabs(x);
  if (a >= 0x1.205968p+3F) return std::copysign(1.0F, x);
  if (a >= 0x1.333334p-1F)
    return std::copysign(std::fma(rcp(ex2(a * 0x1.715476p+1F) + 1), -2.0F, 1.0F), x);
  const float p =
      polynomial(x * x, {0x1.01e104p-6F, -0x1.ac795cp-5F, 0x1.10b282p-3F, -0x1.5553dap-2F, 0.0F});
  return std::fma(p, x, x);
}

/// Coefficients of erff's exponent for large arguments: from CUDA 13.0 on, and before, as the
/// library has them that Triton 3.6 links. Everything else is the same.
using ErffTail = float[7];
inline constexpr ErffTail erff_tail_13 = {0x1.d69874p-14F, -0x1.5c00b6p-10F, 0x1.13233ep-7F,
                                          -0x1.49b334p-5F, 0x1.46aa32p-3F,   0x1.d369f2p-1F,
                                          0x1.421428p-1F};
inline constexpr ErffTail erff_tail_12 = {0x1.139478p-16F, -0x1.eac172p-12F, 0x1.590816p-8F,
                                          -0x1.1902c4p-5F, 0x1.39f20cp-3F,   0x1.d526fcp-1F,
                                          0x1.41b084p-1F};

/// A polynomial near 0, else 1 - 2^p with a polynomial p.
inline float erff(float x, const ErffTail& tail = erff_tail_13) {
  const float a = std::fabs(x);
  if (a >= 0x1.00c1fcp+0F) return std::copysign(1 - ex2(std::fma(polynomial(a, tail), -a, -a)), x);
  const float p =
      polynomial(x * x, {0x1.63d2d4p-14F, -0x1.ae9a4p-11F, 0x1.55abd4p-8F, -0x1.b837cep-6F,
                         0x1.ce315ep-4F, -0x1.812758p-2F, 0x1.06eba6p-3F});
  return std::fma(p, x, x);
}

}  // namespace guardbit::emulator::cuda_math
