#pragma once

#include <cstdint>

// Chains of multiply-adds as CUDA cores compute them.
namespace guardbit::emulator::multiply_add {

/// sum[j] = fma(a, b[j], sum[j]) for j below n; the CPU's own instruction where it has one.
void fma_row(float a, const float* b, float* sum, std::int64_t n);
void fma_row(double a, const double* b, double* sum, std::int64_t n);

}  // namespace guardbit::emulator::multiply_add
