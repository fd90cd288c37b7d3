// Compiled once for each instruction set, with namespace Eigen renamed (-DEigen=...), so that no
// function of one object can stand in for another's: the linker keeps one copy of each name.
#include "experiments/training/eigen_product.hpp"

#include <Eigen/Core>

namespace guardbit::experiments {

namespace {

template <class T>
void add_product(const T* a, const T* b, T* c, Eigen::Index m, Eigen::Index n, Eigen::Index k) {
  using Matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  Eigen::Map<Matrix>(c, m, n).noalias() +=
      Eigen::Map<const Matrix>(a, m, k) * Eigen::Map<const Matrix>(b, k, n);
}

using Rows = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Columns = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::ColMajor>;

template <class A, class B>
void add_product_of(const float* a, Eigen::Index a_stride, const float* b, float* c, Eigen::Index m,
                    Eigen::Index n, Eigen::Index k) {
  Eigen::Map<Rows>(c, m, n).noalias() +=
      Eigen::Map<const A, 0, Eigen::OuterStride<>>(a, m, k, Eigen::OuterStride<>(a_stride)) *
      Eigen::Map<const B>(b, k, n);
}

}  // namespace

namespace GUARDBIT_EIGEN {

void sgemm_of(const float* a, bool a_by_columns, std::int64_t a_stride, const float* b,
              bool b_by_columns, float* c, std::int64_t m, std::int64_t n, std::int64_t k) {
  if (a_by_columns) {
    b_by_columns ? add_product_of<Columns, Columns>(a, a_stride, b, c, m, n, k)
                 : add_product_of<Columns, Rows>(a, a_stride, b, c, m, n, k);
  } else {
    b_by_columns ? add_product_of<Rows, Columns>(a, a_stride, b, c, m, n, k)
                 : add_product_of<Rows, Rows>(a, a_stride, b, c, m, n, k);
  }
}

void sgemm(const float* a, const float* b, float* c, std::int64_t m, std::int64_t n,
           std::int64_t k) {
  add_product(a, b, c, m, n, k);
}

void dgemm(const double* a, const double* b, double* c, std::int64_t m, std::int64_t n,
           std::int64_t k) {
  add_product(a, b, c, m, n, k);
}

}  // namespace GUARDBIT_EIGEN

}  // namespace guardbit::experiments
