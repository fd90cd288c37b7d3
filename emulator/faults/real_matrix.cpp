#include "emulator/faults/real_matrix.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>

#include "emulator/engine/cpu.hpp"
#include "formats/support/stop.hpp"

namespace guardbit::emulator {

namespace {

/// Adds factors[r] * lines[r] to `sum` for the four r. One pass over `sum` serves four lines.
inline void add_four(std::span<double> sum, const double* const lines[4], const double factors[4]) {
  const double f0 = factors[0], f1 = factors[1], f2 = factors[2], f3 = factors[3];
  const double *x0 = lines[0], *x1 = lines[1], *x2 = lines[2], *x3 = lines[3];
  double* const to = sum.data();
  for (std::size_t j = 0; j < sum.size(); ++j)
    to[j] += (f0 * x0[j] + f1 * x1[j]) + (f2 * x2[j] + f3 * x3[j]);
}

/// Lines of y that stay in a cache while all rows of x use them.
constexpr std::int64_t strip = 16;

/// Adds elements [first, last) of K of x * y to the result, in the order of their numbers.
inline void add_product(const RealMatrix& x, const RealMatrix& y, std::int64_t first,
                        std::int64_t last, RealMatrix& result) {
  const std::vector<double> zeros(static_cast<std::size_t>(y.columns));
  for (std::int64_t begin = first; begin < last; begin += strip) {
    const std::int64_t end = std::min(last, begin + strip);
    for (std::int64_t i = 0; i < x.rows; ++i) {
      const std::span<double> sum(result.row(i), zeros.size());
      for (std::int64_t k = begin; k < end; k += 4) {
        const double* lines[4];
        double factors[4];
        for (std::int64_t r = 0; r < 4; ++r) {
          lines[r] = k + r < end ? y.row(k + r) : zeros.data();
          factors[r] = k + r < end ? x(i, k + r) : 0;
        }
        add_four(sum, lines, factors);
      }
    }
  }
}

#if defined(__x86_64__)
// Wider vectors give the same numbers: each element is computed by itself.
[[gnu::target("avx2"), gnu::flatten]] void add_product_on_x86(const RealMatrix& x,
                                                              const RealMatrix& y,
                                                              std::int64_t first, std::int64_t last,
                                                              RealMatrix& result) {
  add_product(x, y, first, last, result);
}
bool is_usable() { return cpu::features().avx2_kernels; }
#else
void add_product_on_x86(const RealMatrix& x, const RealMatrix& y, std::int64_t first,
                        std::int64_t last, RealMatrix& result) {
  add_product(x, y, first, last, result);
}
bool is_usable() { return false; }
#endif

}  // namespace

RealMatrix part(const RealMatrix& x, std::int64_t i, std::int64_t rows, std::int64_t j,
                std::int64_t columns) {
  RealMatrix result(rows, columns);
  for (std::int64_t r = 0; r < rows; ++r) std::copy_n(x.row(i + r) + j, columns, result.row(r));
  return result;
}

RealMatrix selected(const RealMatrix& x, const std::vector<std::int64_t>& rows,
                    const std::vector<std::int64_t>& columns) {
  RealMatrix result(std::ssize(rows), std::ssize(columns));
  double* to = result.values.data();
  for (const std::int64_t i : rows)
    for (const std::int64_t j : columns) *to++ = x(i, j);
  return result;
}

RealMatrix transposed(const RealMatrix& x) {
  RealMatrix result(x.columns, x.rows);
  formats::check_stop();
  for (std::int64_t i = 0; i < x.rows; ++i)
    for (std::int64_t j = 0; j < x.columns; ++j) result(j, i) = x(i, j);
  return result;
}

RealMatrix difference(RealMatrix x, const RealMatrix& y) {
  for (std::size_t i = 0; i < x.values.size(); ++i) {
    x.values[i] -= y.values[i];
    if (!std::isfinite(x.values[i])) x.values[i] = 0;
  }
  return x;
}

std::vector<double> squares_of_rows(const RealMatrix& x) {
  std::vector<double> squares;
  for (std::int64_t i = 0; i < x.rows; ++i) {
    double sum = 0;
    for (std::int64_t j = 0; j < x.columns; ++j) sum += x(i, j) * x(i, j);
    squares.push_back(sum);
  }
  return squares;
}

RealMatrix multiply(const RealMatrix& x, const RealMatrix& y) {
  // Multiply-adds after which an end may be asked for: some milliseconds.
  constexpr std::int64_t at_once = std::int64_t{1} << 23;
  RealMatrix result(x.rows, y.columns);
  const std::int64_t line = std::max<std::int64_t>(1, x.rows * y.columns);
  const std::int64_t length = std::max(strip, at_once / line / strip * strip);
  for (std::int64_t begin = 0; begin < y.rows; begin += length) {
    formats::check_stop();
    const std::int64_t end = std::min(y.rows, begin + length);
    is_usable() ? add_product_on_x86(x, y, begin, end, result)
                : add_product(x, y, begin, end, result);
  }
  return result;
}

RealMatrix without_row_means(RealMatrix x) {
  for (std::int64_t i = 0; i < x.rows; ++i) {
    double* const row = x.row(i);
    const double mean = std::accumulate(row, row + x.columns, 0.0) / static_cast<double>(x.columns);
    std::for_each(row, row + x.columns, [&](double& value) { value -= mean; });
  }
  return x;
}

RealMatrix multiply_compensated(const RealMatrix& x, const RealMatrix& y) {
  RealMatrix sums(x.rows, y.columns), lost = sums;
  for (std::int64_t i = 0; i < x.rows; ++i) {
    formats::check_stop();
    for (std::int64_t k = 0; k < x.columns; ++k) {
      for (std::int64_t j = 0; j < y.columns; ++j) {
        const double before = sums(i, j);
        const double product = x(i, k) * y(k, j);
        const double after = before + product;
        // What the product and the sum have lost, both exactly.
        const double added = after - before;
        lost(i, j) +=
            std::fma(x(i, k), y(k, j), -product) + ((before - (after - added)) + (product - added));
        sums(i, j) = after;
      }
    }
  }
  for (std::size_t at = 0; at < sums.values.size(); ++at) sums.values[at] += lost.values[at];
  return sums;
}

RealMatrix multiply_transposed(const RealMatrix& x, const RealMatrix& y) {
  return multiply(transposed(x), y);
}

RealMatrix multiply_by_transposed(const RealMatrix& x, const RealMatrix& y) {
  return multiply(x, transposed(y));
}

double dot(const std::vector<double>& x, const std::vector<double>& y) {
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) sum += x[i] * y[i];
  return sum;
}

double median(std::vector<double> list) {
  if (list.empty()) return 0;
  const auto middle = list.begin() + static_cast<std::ptrdiff_t>(list.size() / 2);
  std::nth_element(list.begin(), middle, list.end());
  return *middle;
}

std::vector<double> solve_symmetric(
    const std::function<std::vector<double>(const std::vector<double>&)>& times,
    const std::vector<double>& diagonal, const std::vector<double>& right, int steps) {
  // Conjugate gradients, preconditioned by the diagonal.
  const auto scaled = [&](std::vector<double> r) {
    for (std::size_t i = 0; i < r.size(); ++i) r[i] = diagonal[i] > 0 ? r[i] / diagonal[i] : 0;
    return r;
  };
  std::vector<double> x(right.size()), r = right, z = scaled(r), p = z;
  double rz = dot(r, z);
  const double enough = 1e-20 * rz;
  for (int step = 0; step < steps && rz > enough; ++step) {
    formats::check_stop();
    const std::vector<double> q = times(p);
    const double curvature = dot(p, q);
    if (!(curvature > 0)) break;
    const double length = rz / curvature;
    for (std::size_t i = 0; i < x.size(); ++i) x[i] += length * p[i], r[i] -= length * q[i];
    z = scaled(r);
    const double next = dot(r, z);
    for (std::size_t i = 0; i < p.size(); ++i) p[i] = z[i] + next / rz * p[i];
    rz = next;
  }
  return x;
}

RealMatrix solve_positive(RealMatrix matrix, RealMatrix right) {
  // Cholesky: the matrix becomes L with matrix = L * transposed(L), then both are divided out.
  const std::int64_t n = matrix.rows;
  const auto subtract = [&](std::int64_t from, std::int64_t to, double factor) {
    for (std::int64_t j = 0; j < right.columns; ++j) right(to, j) -= factor * right(from, j);
  };
  for (std::int64_t k = 0; k < n; ++k) {
    formats::check_stop();
    const double whole = matrix(k, k);
    double left = whole;
    for (std::int64_t l = 0; l < k; ++l) left -= matrix(k, l) * matrix(k, l);
    if (!(left > 1e-10 * whole)) return {};
    matrix(k, k) = std::sqrt(left);
    for (std::int64_t i = k + 1; i < n; ++i) {
      double sum = matrix(i, k);
      for (std::int64_t l = 0; l < k; ++l) sum -= matrix(i, l) * matrix(k, l);
      matrix(i, k) = sum / matrix(k, k);
    }
  }
  for (std::int64_t k = 0; k < n; ++k) {
    for (std::int64_t l = 0; l < k; ++l) subtract(l, k, matrix(k, l));
    for (std::int64_t j = 0; j < right.columns; ++j) right(k, j) /= matrix(k, k);
  }
  for (std::int64_t k = n - 1; k >= 0; --k) {
    for (std::int64_t l = k + 1; l < n; ++l) subtract(l, k, matrix(l, k));
    for (std::int64_t j = 0; j < right.columns; ++j) right(k, j) /= matrix(k, k);
  }
  return right;
}

std::vector<double> solve_symmetric(const RealMatrix& x, const std::vector<double>& right) {
  std::vector<double> diagonal;
  for (std::int64_t i = 0; i < x.rows; ++i) diagonal.push_back(x(i, i));
  const auto times = [&](const std::vector<double>& p) {
    std::vector<double> q(p.size());
    for (std::int64_t i = 0; i < x.rows; ++i)
      for (std::int64_t j = 0; j < x.columns; ++j)
        q[static_cast<std::size_t>(i)] += x(i, j) * p[static_cast<std::size_t>(j)];
    return q;
  };
  return solve_symmetric(times, diagonal, right, static_cast<int>(4 * x.rows));
}

std::vector<double> nearest_factors(const std::vector<const std::vector<double>*>& columns,
                                    const std::vector<double>& y,
                                    const std::function<bool(std::size_t)>& counts) {
  const auto n = std::ssize(columns);
  RealMatrix squares(n, n);
  std::vector<double> right(columns.size());
  for (std::size_t at = 0; at < y.size(); ++at) {
    if (!counts(at) || !std::isfinite(y[at])) continue;
    for (std::int64_t i = 0; i < n; ++i) {
      const double value = (*columns[static_cast<std::size_t>(i)])[at];
      right[static_cast<std::size_t>(i)] += value * y[at];
      for (std::int64_t j = 0; j < n; ++j)
        squares(i, j) += value * (*columns[static_cast<std::size_t>(j)])[at];
    }
  }
  return solve_symmetric(squares, right);
}

}  // namespace guardbit::emulator
