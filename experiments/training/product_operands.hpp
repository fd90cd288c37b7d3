#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "emulator/engine/matrix_product.hpp"
#include "experiments/training/blocks.hpp"
#include "experiments/training/layout.hpp"
#include "experiments/training/training_tensor.hpp"

namespace guardbit::experiments::training {

/// One operand of a product as its unit takes it: lines (rows of A, columns of B) of k elements.
struct Operand {
  std::int64_t lines = 0, k = 0;
  /// (line, k)
  emulator::ConstMatrix codes;
  /// (line, block of k), where blocks have scales
  emulator::ConstMatrix scales;
  /// of the tensor: an element stands for itself times this
  float scale = 1;
};

/// A matrix in the format of a unit's operands. Where blocks along K have scales, rows and columns
/// are two different tensors, each quantised from the source.
class CodedMatrix {
 public:
  CodedMatrix() = default;
  /// The rows times columns numbers.
  CodedMatrix(const Encoding& encoding, const float* values, std::int64_t rows,
              std::int64_t columns, int threads);

  std::int64_t rows() const { return rows_; }
  std::int64_t columns() const { return columns_; }
  Operand by_rows() const;
  Operand by_columns() const;
  /// by_columns, mixed along K where the recipe says so: both operands of a weight's gradient.
  Operand for_weight_gradient() const;
  /// The matrix of a convolution's windows over this one, which holds images: [pixels, channels].
  CodedMatrix gathered(const Windows& windows, int threads) const;
  /// The matrix whose element (i, j) is element source(i, j) of this one.
  CodedMatrix rearranged(
      std::int64_t rows, std::int64_t columns,
      const std::function<std::int64_t(std::int64_t, std::int64_t)>& source) const;
  /// How many numbers other than zero are zero here; counted where there are scales.
  std::int64_t underflow() const { return underflow_; }

 private:
  bool has_blocks() const {
    return encoding_.scaling == OperandScaling::mx || encoding_.scaling == OperandScaling::nvfp4;
  }
  CodedMatrix same_encoding(std::int64_t rows, std::int64_t columns) const;
  void encode(const float* values, int threads);
  CodedLines encode_blocks(bool turned, bool mixed) const;
  Operand of_lines(const CodedLines& lines, bool turned) const;

  Encoding encoding_;
  std::int64_t rows_ = 0, columns_ = 0, underflow_ = 0;
  int threads_ = 1;
  /// row-major; without blocks
  std::vector<std::byte> codes_;
  /// the source, where there are blocks
  Values values_;
  /// By rows, by columns and mixed, each made when it is first asked for.
  mutable std::optional<CodedLines> rows_lines_, column_lines_, mixed_lines_;
};

}  // namespace guardbit::experiments::training
