#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "emulator/faults/fault_hypotheses.hpp"
#include "emulator/gemm/scalar.hpp"

// Single elements of A, B and D that have another value.
namespace guardbit::emulator {

namespace {

/// The simplest number near a fitted one: zero, the old one negated, one of few bits, one of the
/// operand's format.
double likely_value(const formats::Format& format, double fitted, double old, double blur) {
  const double change = std::abs(fitted - old);
  if (std::abs(fitted) < 0.01 * change) return 0;
  if (std::abs(fitted + old) < 0.01 * change) return -old;
  for (int bits = 1; bits < 24; ++bits) {
    int exponent = 0;
    const double significand = std::frexp(fitted, &exponent);
    const double simple = std::ldexp(std::round(std::ldexp(significand, bits)), exponent - bits);
    if (bits >= format.fraction_bits + 1) break;
    if (std::abs(simple - fitted) <= blur) return simple;
  }
  const double rounded = scalar::rounded(format, fitted);
  return std::abs(rounded - fitted) < 0.02 * change ? rounded : fitted;
}

/// An element of A that makes its row of D wrong. For B the problem comes transposed.
struct WrongElement {
  std::int64_t row = 0, k = 0;
  double old = 0, used = 0;
  /// how exact the value is that was fitted
  double blur = 0;
};

/// What the errors of one row of D, in some columns, say of elements of A.
class RowOfErrors {
 public:
  RowOfErrors(const ProductNumbers& x, const Expected& asked, std::int64_t row,
              const std::vector<std::int64_t>& columns)
      : x_(x), row_(row), b_(selected(x.b, all_numbers(x.k()), columns)) {
    for (const std::int64_t j : columns) {
      const double wanted = asked.result(row, j);
      error_.push_back((x.d(row, j) - wanted) / x.alpha);
      rounding_.push_back(x.rounding_of_d(x.d(row, j)));
      allowed_.push_back((x.rounding_unit() * asked.magnitude(row, j) + rounding_.back()) /
                         std::abs(x.alpha));
    }
  }

  /// The fewest elements, at most `most`, that explain them.
  std::vector<WrongElement> explained(std::size_t most) const;

 private:
  /// The k whose line of B is most of these errors.
  std::int64_t likest_k(const std::vector<double>& error) const;
  /// The changes of A's elements at these k that are nearest to the errors.
  std::vector<double> fitted(const std::vector<std::int64_t>& k) const;
  WrongElement element(std::int64_t k, double change) const;
  double of_b(std::int64_t k, std::size_t j) const { return b_(k, static_cast<std::int64_t>(j)); }

  const ProductNumbers& x_;
  std::int64_t row_;
  RealMatrix b_;
  std::vector<double> error_, rounding_, allowed_;
};

std::int64_t RowOfErrors::likest_k(const std::vector<double>& error) const {
  std::int64_t best = -1;
  double most = 0;
  for (std::int64_t k = 0; k < b_.rows; ++k) {
    double product = 0, square = 0;
    for (std::size_t j = 0; j < error.size(); ++j) {
      product += of_b(k, j) * error[j];
      square += of_b(k, j) * of_b(k, j);
    }
    if (square == 0 || product * product / square <= most) continue;
    most = product * product / square;
    best = k;
  }
  return best;
}

std::vector<double> RowOfErrors::fitted(const std::vector<std::int64_t>& k) const {
  const auto n = std::ssize(k);
  RealMatrix squares(n, n);
  std::vector<double> right(k.size());
  for (std::size_t p = 0; p < k.size(); ++p)
    for (std::size_t j = 0; j < error_.size(); ++j) {
      right[p] += of_b(k[p], j) * error_[j];
      for (std::size_t q = 0; q < k.size(); ++q)
        squares(static_cast<std::int64_t>(p), static_cast<std::int64_t>(q)) +=
            of_b(k[p], j) * of_b(k[q], j);
    }
  return solve_symmetric(squares, right);
}

WrongElement RowOfErrors::element(std::int64_t k, double change) const {
  double square = 0, roundings = 0;
  for (std::size_t j = 0; j < error_.size(); ++j) {
    square += of_b(k, j) * of_b(k, j);
    roundings += rounding_[j] * rounding_[j];
  }
  const double blur = 3 * std::sqrt(roundings) / square *
                      std::sqrt(square / static_cast<double>(error_.size())),
               old = x_.a(row_, k);
  return {row_, k, old, likely_value(x_.input, old + change, old, blur), blur};
}

std::vector<WrongElement> RowOfErrors::explained(std::size_t most) const {
  if (!std::all_of(error_.begin(), error_.end(), [](double e) { return std::isfinite(e); }))
    return {};
  std::vector<double> left = error_;
  std::vector<std::int64_t> k;
  std::vector<WrongElement> elements;
  while (k.size() < most) {
    const std::int64_t next = likest_k(left);
    if (next < 0 || std::find(k.begin(), k.end(), next) != k.end()) return {};
    k.push_back(next);
    const std::vector<double> change = fitted(k);
    elements.clear();
    for (std::size_t p = 0; p < k.size(); ++p) elements.push_back(element(k[p], change[p]));
    bool is_explained = true;
    for (std::size_t j = 0; j < error_.size(); ++j) {
      double rest = error_[j], allowed = 2 * allowed_[j] + rounding_[j];
      for (const WrongElement& e : elements) {
        const double changed = (e.used - e.old) * of_b(e.k, j);
        rest -= changed;
        allowed += x_.rounding_unit() * std::abs(changed) + e.blur * std::abs(of_b(e.k, j));
      }
      left[j] = rest;
      is_explained = is_explained && std::abs(rest) <= allowed;
    }
    if (is_explained) return elements;
  }
  return {};
}

Fault fault_of(const ProductNumbers& x, const WrongElement& e, bool is_b) {
  const std::int64_t line = is_b ? x.columns(e.row) : x.rows(e.row);
  const std::int64_t row = is_b ? e.k : line, column = is_b ? line : e.k;
  return {.kind = FaultKind::wrong_element,
          .k = {{e.k, e.k + 1}},
          .rows = {{row, row + 1}},
          .columns = {{column, column + 1}},
          .value = e.used,
          .operand = is_b ? "b" : "a",
          .text = "element [" + std::to_string(row) + ", " + std::to_string(column) + "] of " +
                  (is_b ? "B" : "A") + " was taken as " + text_of(e.used, 9) + ", not " +
                  text_of(e.old, 9)};
}

/// Elements of A that make these rows wrong, by the columns that are not `others`; nothing if some
/// row has none.
std::optional<std::vector<WrongElement>> elements_of_rows(const ProductNumbers& x,
                                                          const std::vector<std::int64_t>& rows,
                                                          const std::vector<std::int64_t>& others) {
  constexpr std::int64_t fewest = 3, fewest_for_two = 8;
  const Expected asked = x.asked();
  std::vector<WrongElement> all;
  for (const std::int64_t i : rows) {
    std::vector<std::int64_t> columns;
    for (std::int64_t j = 0; j < x.n(); ++j)
      if (!x.is_hidden(static_cast<std::size_t>(i * x.n() + j)) &&
          !std::binary_search(others.begin(), others.end(), j))
        columns.push_back(j);
    if (std::ssize(columns) < fewest) return {};
    const bool may_be_two = std::min(std::ssize(columns), x.k()) >= fewest_for_two;
    const auto elements = RowOfErrors(x, asked, i, columns).explained(may_be_two ? 2 : 1);
    if (elements.empty()) return {};
    all.insert(all.end(), elements.begin(), elements.end());
  }
  return all;
}

/// D agrees with elements of A that make these rows wrong and elements of B that make these columns
/// wrong.
Faults elements_of(const ProductNumbers& x, const std::vector<std::int64_t>& rows,
                   const std::vector<std::int64_t>& columns) {
  const auto of_a = elements_of_rows(x, rows, columns);
  if (!of_a) return {};
  const auto of_b = elements_of_rows(x.turned(), columns, rows);
  if (!of_b) return {};
  ProductNumbers y = x;
  RealMatrix blur(x.m(), x.n());
  Faults faults;
  for (const WrongElement& e : *of_a) {
    y.a(e.row, e.k) = e.used;
    for (std::int64_t j = 0; j < x.n(); ++j)
      blur(e.row, j) += x.rounding_of_d(x.d(e.row, j)) + e.blur * std::abs(x.alpha * x.b(e.k, j));
    faults.push_back(fault_of(x, e, false));
  }
  for (const WrongElement& e : *of_b) {
    y.b(e.k, e.row) = e.used;
    for (std::int64_t i = 0; i < x.m(); ++i)
      blur(i, e.row) += x.rounding_of_d(x.d(i, e.row)) + e.blur * std::abs(x.alpha * x.a(i, e.k));
    faults.push_back(fault_of(x, e, true));
  }
  y.multiply_operands();
  // Kernels may add a wrong product and take it off again.
  for (std::size_t at = 0; at < y.product.values.size(); ++at)
    y.product_magnitude.values[at] += x.product_magnitude.values[at];
  return agrees(y, y.asked(), &blur) ? faults : Faults{};
}

/// Rows in which more outputs are wrong than this share.
std::vector<std::int64_t> wrong_rows(const Disagreement& wrong, std::int64_t columns,
                                     double share) {
  std::vector<std::int64_t> rows;
  for (std::int64_t i = 0; i * columns < std::ssize(wrong.at); ++i) {
    const auto line = wrong.at.begin() + i * columns;
    if (static_cast<double>(std::count(line, line + columns, true)) >
        share * static_cast<double>(columns))
      rows.push_back(i);
  }
  return rows;
}

}  // namespace

Faults find_wrong_elements(const ProductNumbers& x) {
  constexpr std::size_t most_lines = 8;
  const Disagreement wrong = disagreement(x, x.asked());
  if (wrong.count == 1) {
    const auto at = static_cast<std::int64_t>(std::find(wrong.at.begin(), wrong.at.end(), true) -
                                              wrong.at.begin());
    const std::int64_t i = at / x.n(), j = at % x.n();
    return {{.kind = FaultKind::wrong_element,
             .rows = {{x.rows(i), x.rows(i) + 1}},
             .columns = {{x.columns(j), x.columns(j) + 1}},
             .value = x.d(i, j),
             .operand = "d",
             .text = "element [" + std::to_string(x.rows(i)) + ", " + std::to_string(x.columns(j)) +
                     "] of D is wrong, and no other"}};
  }
  Disagreement turned;
  turned.at.resize(wrong.at.size());
  for (std::size_t at = 0; at < wrong.at.size(); ++at)
    turned.at[at % static_cast<std::size_t>(x.n()) * static_cast<std::size_t>(x.m()) +
              at / static_cast<std::size_t>(x.n())] = wrong.at[at];
  // Rows alone, columns alone, then those of which most is wrong.
  const auto look = [&](const std::vector<std::int64_t>& rows,
                        const std::vector<std::int64_t>& columns) {
    const std::size_t count = rows.size() + columns.size();
    return count == 0 || count > most_lines ? Faults{} : elements_of(x, rows, columns);
  };
  if (Faults faults = look(wrong_rows(wrong, x.n(), 0), {}); !faults.empty()) return faults;
  if (Faults faults = look({}, wrong_rows(turned, x.m(), 0)); !faults.empty()) return faults;
  return look(wrong_rows(wrong, x.n(), 0.5), wrong_rows(turned, x.m(), 0.5));
}

}  // namespace guardbit::emulator
