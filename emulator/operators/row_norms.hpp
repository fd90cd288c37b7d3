#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "emulator/operators/operator_tensor.hpp"

// layer_norm and rms_norm, over the last dimensions.
namespace guardbit::emulator::operators {

enum class RowNorm : std::uint8_t { layer, rms };

struct RowNormResult {
  Tensor output;
  /// FP32, with sizes of 1 in place of the normalised ones; rms_norm has no mean
  Tensor mean, reciprocal;
  std::string plan;
};

/// `normalised` is the number of elements of the last dimensions; null weights or biases are none.
RowNormResult row_norm(RowNorm kind, const Tensor& input, std::size_t normalised_dimensions,
                       const Tensor* weight, const Tensor* bias, double epsilon, int threads);

/// Threads that share a column of the weight's gradient, and the rows that they take at once.
struct ColumnShape {
  std::size_t threads = 1, rows = 64;
  /// more than one: partial sums of blocks
  std::size_t blocks = 1;

  std::string text() const;
};
ColumnShape column_shape(std::size_t rows, std::size_t columns);

struct RowNormGradients {
  Tensor input;
  std::optional<Tensor> weight, bias;
  std::string plan;
};
RowNormGradients row_norm_gradients(RowNorm kind, const Tensor& gradient, const Tensor& input,
                                    std::size_t normalised_dimensions, const Tensor* mean,
                                    const Tensor& reciprocal, const Tensor* weight,
                                    bool wants_columns, int threads,
                                    const std::optional<ColumnShape>& columns = {});

}  // namespace guardbit::emulator::operators
