#pragma once

// One batch entry of a matrix of codes, read as FP64 numbers.

#include <cstdint>
#include <memory>
#include <vector>

#include "emulator/gemm/code_matrix.hpp"

namespace guardbit::emulator {

class CodeNumbers {
 public:
  /// A matrix of one entry serves all. It may be empty.
  CodeNumbers(const CodeMatrix& matrix, std::int64_t g);

  bool empty() const { return matrix_.empty(); }
  std::int64_t rows() const { return matrix_.rows; }
  std::int64_t columns() const { return matrix_.columns; }
  double operator()(std::int64_t i, std::int64_t j) const { return decoded(matrix_(entry_, i, j)); }
  /// The first columns() numbers of `line` become row i.
  void read_row(std::int64_t i, std::vector<double>& line) const;
  /// Row i holds neither NaNs nor infinities.
  bool is_finite_row(std::int64_t i) const;

 private:
  double decoded(std::uint64_t code) const;

  CodeMatrix matrix_;
  std::int64_t entry_;
  /// of formats with at most 16 bits, all numbers
  std::shared_ptr<const std::vector<double>> table_;
};

}  // namespace guardbit::emulator
