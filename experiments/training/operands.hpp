#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "emulator/matrix_product.hpp"
#include "experiments/training/layout.hpp"
#include "experiments/training/precision.hpp"
#include "experiments/training/tensor.hpp"

namespace guardbit::experiments::training {

/// One operand of a product as its unit takes it: lines (rows of A, columns of B) of k elements.
struct Operand {
  std::int64_t lines = 0, k = 0;
  emulator::ConstMatrix codes;   ///< (line, k)
  emulator::ConstMatrix scales;  ///< (line, block of k), where blocks have scales
  float scale = 1;               ///< of the tensor: an element stands for itself times this
};

/// What is done to a tensor's numbers before they are rounded into the operands' format.
struct Encoding {
  Format format = formats::fp32;
  OperandScaling scaling = OperandScaling::none;
  float encode = 1, decode = 1;  ///< of the tensor; Transformer Engine's scale and scale_inv
  float tensor_amax = 0;         ///< OperandScaling::nvfp4
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
  /// The matrix of a convolution's windows over this one, which holds images: [pixels, channels].
  CodedMatrix gathered(const Windows& windows, int threads) const;
  /// The matrix whose element (i, j) is element source(i, j) of this one.
  CodedMatrix rearranged(
      std::int64_t rows, std::int64_t columns,
      const std::function<std::int64_t(std::int64_t, std::int64_t)>& source) const;
  /// How many numbers other than zero are zero here.
  std::int64_t underflow() const { return underflow_; }

 private:
  bool has_blocks() const {
    return encoding_.scaling == OperandScaling::mx || encoding_.scaling == OperandScaling::nvfp4;
  }
  CodedMatrix same_encoding(std::int64_t rows, std::int64_t columns) const;
  void encode(const float* values, int threads);
  void encode_blocks(int threads);

  Encoding encoding_;
  std::int64_t rows_ = 0, columns_ = 0, underflow_ = 0;
  std::vector<std::byte> codes_;                   ///< row-major
  std::vector<std::byte> scales_;                  ///< [rows, blocks]
  std::vector<std::byte> turned_, turned_scales_;  ///< the same of the transposed matrix, by blocks
  Values values_;                                  ///< the source, by blocks
};

}  // namespace guardbit::experiments::training
