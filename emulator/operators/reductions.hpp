#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "emulator/operators/machine.hpp"
#include "emulator/operators/operator_tensor.hpp"

// Reductions as PyTorch has them, over any dimensions of any tensor.
namespace guardbit::emulator::operators {

struct ReductionRequest {
  /// may count from the end; none means all
  Dimensions dimensions;
  bool keep_dimensions = false;
  /// of the result; nothing: that of the input, or int64 for a sum of integers
  std::optional<formats::Format> type;
  Machine machine = {};
  int threads = 1;
};

/// A result and the shape of the reduction, in words.
struct Reduced {
  Tensor result;
  std::string shape;
};

Reduced sum(const Tensor& input, const ReductionRequest& request);
/// The same of elements that are no NaN.
Reduced sum_without_nan(const Tensor& input, const ReductionRequest& request);
Reduced mean(const Tensor& input, const ReductionRequest& request);
Reduced product(const Tensor& input, const ReductionRequest& request);
/// Of order 0, 1, 2, infinity, -infinity or any other.
Reduced norm(const Tensor& input, double order, const ReductionRequest& request);
Reduced log_sum_exp(const Tensor& input, const ReductionRequest& request);

struct Spread {
  /// the variance, or its square root
  Tensor spread, mean;
  std::string shape;
};
Spread variance(const Tensor& input, double correction, bool is_root,
                const ReductionRequest& request);

/// The greatest or least elements and where they are: along the one reduced dimension, or in the
/// flattened tensor.
struct Extremes {
  Tensor numbers, indices;
};
Extremes extremes(const Tensor& input, bool is_greatest, const ReductionRequest& request);

/// Is any element (are all elements) other than zero?
Tensor any_or_all(const Tensor& input, bool is_any, const ReductionRequest& request);

}  // namespace guardbit::emulator::operators
