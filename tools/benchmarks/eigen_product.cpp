// Compiled once for each instruction set, with namespace Eigen renamed (-DEigen=...), so that no
// function of one object can stand in for another's: the linker keeps one copy of each name.
#include "tools/benchmarks/eigen_product.hpp"

#include <Eigen/Core>

namespace guardbit::tools {

namespace {

template <class T>
void add_product(const T* a, const T* b, T* c, Eigen::Index m, Eigen::Index n, Eigen::Index k) {
  using Rows = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  Eigen::Map<Rows>(c, m, n).noalias() +=
      Eigen::Map<const Rows>(a, m, k) * Eigen::Map<const Rows>(b, k, n);
}

}  // namespace

namespace GUARDBIT_EIGEN {

void sgemm(const float* a, const float* b, float* c, std::int64_t m, std::int64_t n,
           std::int64_t k) {
  add_product(a, b, c, m, n, k);
}

void dgemm(const double* a, const double* b, double* c, std::int64_t m, std::int64_t n,
           std::int64_t k) {
  add_product(a, b, c, m, n, k);
}

}  // namespace GUARDBIT_EIGEN

}  // namespace guardbit::tools
