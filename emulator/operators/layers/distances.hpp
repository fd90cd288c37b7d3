#pragma once

#include "emulator/operators/operator_tensor.hpp"

// Distances between the rows of two tables (torch.cdist), as PyTorch's own kernels compute them.
namespace guardbit::emulator::operators {

/// A batch of tables with rows of one width, FP32 or FP64.
struct DistanceOperands {
  /// [tables, rows, width]
  const Tensor& first;
  /// [tables, other rows, width]
  const Tensor& second;
  /// of the norm
  double order = 2;
};

/// [tables, rows, other rows]: 256 threads to a distance, in two stages.
Tensor distances(const DistanceOperands& operands, int threads);
/// What each distance adds to the gradient of the first tables, [tables, other rows, rows, width].
/// `gradient` and `distances` are like the result of `distances`.
Tensor distance_gradient_terms(const Tensor& gradient, const DistanceOperands& operands,
                               const Tensor& distances, int threads);

}  // namespace guardbit::emulator::operators
