#pragma once

#include <Eigen/Core>

#include "experiments/training/training_tensor.hpp"

// Tensors as matrices of Eigen.
namespace guardbit::experiments::training {

using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// The tensor's numbers as Eigen takes them.
inline Eigen::Map<Matrix> matrix_of(Tensor& tensor) {
  return {tensor.values.data(), tensor.rows(), tensor.columns()};
}
inline Eigen::Map<const Matrix> matrix_of(const Tensor& tensor) {
  return {tensor.values.data(), tensor.rows(), tensor.columns()};
}

}  // namespace guardbit::experiments::training
