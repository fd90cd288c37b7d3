#include "emulator/engine/kernels/chain/multiply_add.hpp"

#include <cmath>

#include "emulator/engine/cpu.hpp"

namespace guardbit::emulator::multiply_add {

namespace {

template <class Real>
void portable(Real a, const Real* b, Real* sum, std::int64_t n) {
  for (std::int64_t j = 0; j < n; ++j) sum[j] = std::fma(a, b[j], sum[j]);
}

template <class Real>
Real portable(const double* a, const double* b, std::int64_t n, Real sum) {
  for (std::int64_t k = 0; k < n; ++k)
    sum = std::fma(static_cast<Real>(a[k]), static_cast<Real>(b[k]), sum);
  return sum;
}

/// Contraction is off: each product is rounded.
template <class Real>
void row_of_rounded(Real a, const Real* b, Real* sum, std::int64_t n) {
  for (std::int64_t j = 0; j < n; ++j) sum[j] += a * b[j];
}

template <class Real>
Real dot_of_rounded(const double* a, const double* b, std::int64_t n, Real sum) {
  for (std::int64_t k = 0; k < n; ++k) sum += static_cast<Real>(a[k]) * static_cast<Real>(b[k]);
  return sum;
}

#if defined(__x86_64__)

[[gnu::target("avx2,fma")]] void on_x86(float a, const float* b, float* sum, std::int64_t n) {
  for (std::int64_t j = 0; j < n; ++j) sum[j] = __builtin_fmaf(a, b[j], sum[j]);
}
[[gnu::target("avx2,fma")]] void on_x86(double a, const double* b, double* sum, std::int64_t n) {
  for (std::int64_t j = 0; j < n; ++j) sum[j] = __builtin_fma(a, b[j], sum[j]);
}
[[gnu::target("avx2,fma")]] float on_x86(const double* a, const double* b, std::int64_t n,
                                         float sum) {
  for (std::int64_t k = 0; k < n; ++k)
    sum = __builtin_fmaf(static_cast<float>(a[k]), static_cast<float>(b[k]), sum);
  return sum;
}
[[gnu::target("avx2,fma")]] double on_x86(const double* a, const double* b, std::int64_t n,
                                          double sum) {
  for (std::int64_t k = 0; k < n; ++k) sum = __builtin_fma(a[k], b[k], sum);
  return sum;
}
bool is_usable() { return cpu::features().avx2_kernels; }

#else

template <class Real>
void on_x86(Real a, const Real* b, Real* sum, std::int64_t n) {
  portable(a, b, sum, n);
}
template <class Real>
Real on_x86(const double* a, const double* b, std::int64_t n, Real sum) {
  return portable(a, b, n, sum);
}
bool is_usable() { return false; }

#endif

template <class Real>
void any_row(Real a, const Real* b, Real* sum, std::int64_t n, bool rounded) {
  if (rounded) return row_of_rounded(a, b, sum, n);
  is_usable() ? on_x86(a, b, sum, n) : portable(a, b, sum, n);
}

template <class Real>
Real any_dot(const double* a, const double* b, std::int64_t n, Real sum, bool rounded) {
  if (rounded) return dot_of_rounded(a, b, n, sum);
  return is_usable() ? on_x86(a, b, n, sum) : portable(a, b, n, sum);
}

}  // namespace

void fma_row(float a, const float* b, float* sum, std::int64_t n, bool rounded) {
  any_row(a, b, sum, n, rounded);
}
void fma_row(double a, const double* b, double* sum, std::int64_t n, bool rounded) {
  any_row(a, b, sum, n, rounded);
}

float dot(const double* a, const double* b, std::int64_t n, float sum, bool rounded) {
  return any_dot(a, b, n, sum, rounded);
}
double dot(const double* a, const double* b, std::int64_t n, double sum, bool rounded) {
  return any_dot(a, b, n, sum, rounded);
}

}  // namespace guardbit::emulator::multiply_add
