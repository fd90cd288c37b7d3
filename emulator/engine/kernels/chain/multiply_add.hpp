#pragma once

#include <cstdint>

// Chains of multiply-adds as CUDA cores compute them.
namespace guardbit::emulator::multiply_add {

/// sum[j] = fma(a, b[j], sum[j]) for j below n; the CPU's own instruction where it has one. Or,
/// with products `rounded` before they are added, sum[j] + a * b[j].
void fma_row(float a, const float* b, float* sum, std::int64_t n, bool rounded = false);
void fma_row(double a, const double* b, double* sum, std::int64_t n, bool rounded = false);

/// The chain sum = fma(a[k], b[k], sum) for k below n, of numbers of the sum's type.
float dot(const double* a, const double* b, std::int64_t n, float sum, bool rounded = false);
double dot(const double* a, const double* b, std::int64_t n, double sum, bool rounded = false);

}  // namespace guardbit::emulator::multiply_add
