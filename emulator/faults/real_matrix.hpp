#pragma once

// Matrices of FP64 numbers, for what looks at a product as a numerical analyst does. They are no
// model of any hardware.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

namespace guardbit::emulator {

/// Row by row.
struct RealMatrix {
  std::int64_t rows = 0, columns = 0;
  std::vector<double> values = {};

  RealMatrix() = default;
  RealMatrix(std::int64_t rows_, std::int64_t columns_, double value = 0)
      : rows(rows_), columns(columns_), values(static_cast<std::size_t>(rows_ * columns_), value) {}

  bool empty() const { return values.empty(); }
  double* row(std::int64_t i) { return values.data() + i * columns; }
  const double* row(std::int64_t i) const { return values.data() + i * columns; }
  double& operator()(std::int64_t i, std::int64_t j) {
    return values[static_cast<std::size_t>(i * columns + j)];
  }
  double operator()(std::int64_t i, std::int64_t j) const {
    return values[static_cast<std::size_t>(i * columns + j)];
  }
};

/// Rows [i, i + rows) and columns [j, j + columns).
RealMatrix part(const RealMatrix& x, std::int64_t i, std::int64_t rows, std::int64_t j,
                std::int64_t columns);
/// These rows and columns.
RealMatrix selected(const RealMatrix& x, const std::vector<std::int64_t>& rows,
                    const std::vector<std::int64_t>& columns);
RealMatrix transposed(const RealMatrix& x);
/// x - y; zero where that is no number.
RealMatrix difference(RealMatrix x, const RealMatrix& y);
/// The sum of the squares of each row.
std::vector<double> squares_of_rows(const RealMatrix& x);
/// Each row less its mean.
RealMatrix without_row_means(RealMatrix x);
/// Each element by `function`.
template <class Function>
RealMatrix mapped(RealMatrix x, const Function& function) {
  for (double& value : x.values) value = function(value);
  return x;
}

/// x * y.
RealMatrix multiply(const RealMatrix& x, const RealMatrix& y);
/// The same with errors as small as if the sums were kept in twice the precision. Slow.
RealMatrix multiply_compensated(const RealMatrix& x, const RealMatrix& y);
/// The transposed x times y, and x times the transposed y.
RealMatrix multiply_transposed(const RealMatrix& x, const RealMatrix& y);
RealMatrix multiply_by_transposed(const RealMatrix& x, const RealMatrix& y);

double dot(const std::vector<double>& x, const std::vector<double>& y);
/// The middle one of the sorted list, the upper of two; 0 of an empty list.
double median(std::vector<double> list);

/// x with matrix * x = right after at most `steps` steps of conjugate gradients, and zero where the
/// matrix has nothing. The matrix is symmetric and not negative definite; `times` multiplies by it.
std::vector<double> solve_symmetric(
    const std::function<std::vector<double>(const std::vector<double>&)>& times,
    const std::vector<double>& diagonal, const std::vector<double>& right, int steps);
/// x with matrix * x = right for a small matrix that is symmetric and positive; empty if it is not.
RealMatrix solve_positive(RealMatrix matrix, RealMatrix right);
/// The same for a small matrix and one right side, by conjugate gradients.
std::vector<double> solve_symmetric(const RealMatrix& matrix, const std::vector<double>& right);
/// The factors of these columns whose sum is nearest to y, where `counts` says so and y is a
/// number.
std::vector<double> nearest_factors(const std::vector<const std::vector<double>*>& columns,
                                    const std::vector<double>& y,
                                    const std::function<bool(std::size_t)>& counts);

}  // namespace guardbit::emulator
