#pragma once

#include <cstdint>

// C += A * B by Eigen on one thread: matrices row by row, [m, k], [k, n] and [m, n]; `sgemm_of`
// takes A and B as they lie, each perhaps column by column, with A's lines `a_stride` apart. The
// same code compiled for several instruction sets; a CPU must have those of the one that is called.
namespace guardbit::experiments {

// NOLINTBEGIN(readability-identifier-naming): the names that BLAS made familiar
namespace eigen_avx512 {  // AVX-512 F, BW, DQ, VL
void sgemm(const float* a, const float* b, float* c, std::int64_t m, std::int64_t n,
           std::int64_t k);
void dgemm(const double* a, const double* b, double* c, std::int64_t m, std::int64_t n,
           std::int64_t k);
void sgemm_of(const float* a, bool a_by_columns, std::int64_t a_stride, const float* b,
              bool b_by_columns, float* c, std::int64_t m, std::int64_t n, std::int64_t k);
}  // namespace eigen_avx512

namespace eigen_avx2 {  // AVX2 and FMA
void sgemm(const float* a, const float* b, float* c, std::int64_t m, std::int64_t n,
           std::int64_t k);
void dgemm(const double* a, const double* b, double* c, std::int64_t m, std::int64_t n,
           std::int64_t k);
void sgemm_of(const float* a, bool a_by_columns, std::int64_t a_stride, const float* b,
              bool b_by_columns, float* c, std::int64_t m, std::int64_t n, std::int64_t k);
}  // namespace eigen_avx2

namespace eigen_baseline {  // what every CPU of the architecture has
void sgemm(const float* a, const float* b, float* c, std::int64_t m, std::int64_t n,
           std::int64_t k);
void dgemm(const double* a, const double* b, double* c, std::int64_t m, std::int64_t n,
           std::int64_t k);
void sgemm_of(const float* a, bool a_by_columns, std::int64_t a_stride, const float* b,
              bool b_by_columns, float* c, std::int64_t m, std::int64_t n, std::int64_t k);
}  // namespace eigen_baseline

namespace eigen_native {  // what the CPU has that compiled it; in guardbit_benchmark alone
void sgemm(const float* a, const float* b, float* c, std::int64_t m, std::int64_t n,
           std::int64_t k);
void dgemm(const double* a, const double* b, double* c, std::int64_t m, std::int64_t n,
           std::int64_t k);
}  // namespace eigen_native
// NOLINTEND(readability-identifier-naming)

}  // namespace guardbit::experiments
