#include "emulator/faults/real_matrix.hpp"

#include <Eigen/Cholesky>
#include <Eigen/Core>
#include <algorithm>
#include <cmath>

namespace guardbit::emulator {

namespace {

using Rows = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

Eigen::Map<const Rows> view(const RealMatrix& x) { return {x.values.data(), x.rows, x.columns}; }
Eigen::Map<Rows> view(RealMatrix& x) { return {x.values.data(), x.rows, x.columns}; }

}  // namespace

RealMatrix part(const RealMatrix& x, std::int64_t i, std::int64_t rows, std::int64_t j,
                std::int64_t columns) {
  RealMatrix result(rows, columns);
  view(result) = view(x).block(i, j, rows, columns);
  return result;
}

RealMatrix transposed(const RealMatrix& x) {
  RealMatrix result(x.columns, x.rows);
  view(result) = view(x).transpose();
  return result;
}

RealMatrix multiply(const RealMatrix& x, const RealMatrix& y) {
  RealMatrix result(x.rows, y.columns);
  view(result).noalias() = view(x) * view(y);
  return result;
}

RealMatrix multiply_transposed(const RealMatrix& x, const RealMatrix& y) {
  RealMatrix result(x.columns, y.columns);
  view(result).noalias() = view(x).transpose() * view(y);
  return result;
}

RealMatrix multiply_by_transposed(const RealMatrix& x, const RealMatrix& y) {
  RealMatrix result(x.rows, y.rows);
  view(result).noalias() = view(x) * view(y).transpose();
  return result;
}

std::vector<double> solve_symmetric(RealMatrix x, std::vector<double> y) {
  Eigen::Map<Rows> matrix = view(x);
  Eigen::Map<Eigen::VectorXd> right(y.data(), static_cast<Eigen::Index>(y.size()));
  // Unknowns of one size: their squares stand on the diagonal. What x says nothing of gets a zero.
  Eigen::VectorXd scale = matrix.diagonal();
  for (double& value : scale) value = value > 0 ? 1 / std::sqrt(value) : 0;
  matrix = scale.asDiagonal() * matrix * scale.asDiagonal();
  constexpr double ridge = 1e-10;
  for (Eigen::Index i = 0; i < matrix.rows(); ++i)
    matrix(i, i) = (scale[i] == 0 ? 1 : matrix(i, i)) + ridge;
  right = scale.cwiseProduct(Eigen::LLT<Rows>(matrix).solve(scale.cwiseProduct(right)));
  return y;
}

}  // namespace guardbit::emulator
