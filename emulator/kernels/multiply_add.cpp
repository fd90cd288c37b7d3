#include "emulator/kernels/multiply_add.hpp"

#include <cmath>

#include "emulator/cpu.hpp"

namespace guardbit::emulator::multiply_add {

namespace {

template <class Real>
void portable(Real a, const Real* b, Real* sum, std::int64_t n) {
  for (std::int64_t j = 0; j < n; ++j) sum[j] = std::fma(a, b[j], sum[j]);
}

#if defined(__x86_64__)

[[gnu::target("avx2,fma")]] void on_x86(float a, const float* b, float* sum, std::int64_t n) {
  for (std::int64_t j = 0; j < n; ++j) sum[j] = __builtin_fmaf(a, b[j], sum[j]);
}
[[gnu::target("avx2,fma")]] void on_x86(double a, const double* b, double* sum, std::int64_t n) {
  for (std::int64_t j = 0; j < n; ++j) sum[j] = __builtin_fma(a, b[j], sum[j]);
}
bool is_usable() { return cpu::features().avx2_kernels; }

#else

template <class Real>
void on_x86(Real a, const Real* b, Real* sum, std::int64_t n) {
  portable(a, b, sum, n);
}
bool is_usable() { return false; }

#endif

}  // namespace

void fma_row(float a, const float* b, float* sum, std::int64_t n) {
  is_usable() ? on_x86(a, b, sum, n) : portable(a, b, sum, n);
}
void fma_row(double a, const double* b, double* sum, std::int64_t n) {
  is_usable() ? on_x86(a, b, sum, n) : portable(a, b, sum, n);
}

}  // namespace guardbit::emulator::multiply_add
