#include "emulator/faults/product_numbers.hpp"

#include <algorithm>
#include <cmath>

#include "emulator/gemm/scalar.hpp"
#include "formats/format_catalogue.hpp"

namespace guardbit::emulator {

namespace {

RealMatrix real(const CodeMatrix& x, std::int64_t g) {
  if (x.empty()) return {};
  RealMatrix result(x.rows, x.columns);
  const std::int64_t entry = x.batch == 1 ? 0 : g;
  for (std::int64_t i = 0; i < x.rows; ++i)
    for (std::int64_t j = 0; j < x.columns; ++j)
      result(i, j) = scalar::decoded(x.format, x(entry, i, j));
  return result;
}

RealMatrix magnitudes(const RealMatrix& x) {
  return mapped(x, [](double value) { return std::abs(value); });
}

/// Each row times its scale; scales of blocks of K are those of their elements.
void scale_rows(RealMatrix& a, const GemmProblem& problem, std::int64_t g) {
  if (problem.scale_a.empty()) return;
  for (std::int64_t i = 0; i < a.rows; ++i)
    for (std::int64_t k = 0; k < a.columns; ++k)
      a(i, k) *= scale_at(problem.scale_a, g, i, k, a.rows, a.columns, problem.scale_k);
}

void scale_columns(RealMatrix& b, const GemmProblem& problem, std::int64_t g) {
  if (problem.scale_b.empty()) return;
  for (std::int64_t k = 0; k < b.rows; ++k)
    for (std::int64_t j = 0; j < b.columns; ++j)
      b(k, j) *= scale_at(problem.scale_b, g, k, j, b.rows, b.columns, problem.scale_k);
}

/// Adds factor * addend to the result and its size to the magnitude; one row or one column serves
/// all.
void add(Expected& x, const RealMatrix& addend, double factor) {
  if (addend.empty()) return;
  for (std::int64_t i = 0; i < x.result.rows; ++i) {
    for (std::int64_t j = 0; j < x.result.columns; ++j) {
      const double term = factor * addend(addend.rows == 1 ? 0 : i, addend.columns == 1 ? 0 : j);
      x.result(i, j) += term;
      x.magnitude(i, j) += std::abs(term);
    }
  }
}

}  // namespace

ProductNumbers numbers_of(const GemmCapture& capture, std::int64_t g) {
  const GemmProblem& problem = capture.problem;
  ProductNumbers x;
  x.a = real(problem.a, g);
  x.b = real(problem.b, g);
  scale_rows(x.a, problem, g);
  scale_columns(x.b, problem, g);
  x.c = real(problem.c, g);
  x.bias = real(problem.bias, g);
  x.d = real(capture.d, g);
  x.alpha = capture.alpha;
  x.beta = x.c.empty() ? 0 : capture.beta;
  x.input = capture.tf32 ? formats::tf32 : problem.a.format;
  x.output = capture.d.format;
  x.product = multiply(x.a, x.b);
  x.product_magnitude = multiply(magnitudes(x.a), magnitudes(x.b));
  return x;
}

Expected ProductNumbers::with_factors(double product_factor, double c_factor) const {
  Expected x{
      mapped(product, [&](double value) { return product_factor * value; }),
      mapped(product_magnitude, [&](double value) { return std::abs(product_factor) * value; })};
  add(x, c, c_factor);
  add(x, bias, 1);
  return x;
}

Expected ProductNumbers::asked() const { return with_factors(alpha, beta); }

ProductNumbers ProductNumbers::part(std::int64_t i, std::int64_t rows, std::int64_t j,
                                    std::int64_t columns) const {
  ProductNumbers x = *this;
  x.a = emulator::part(a, i, rows, 0, k());
  x.b = emulator::part(b, 0, k(), j, columns);
  for (RealMatrix* all : {&x.c, &x.d, &x.product, &x.product_magnitude})
    if (!all->empty()) *all = emulator::part(*all, i, rows, j, columns);
  if (!bias.empty()) x.bias = emulator::part(bias, 0, bias.rows, j, columns);
  return x;
}

double ProductNumbers::rounding_unit() const {
  const double length = static_cast<double>(std::max<std::int64_t>(k(), 8));
  // Errors of a chain grow with its length where signs do not cancel, of a random walk with the
  // square root.
  const double growth = std::pow(length, 0.75);
  if (formats::bits(input) <= 8)
    return 0x1p-11;  // Hopper keeps 13 fraction bits below the largest product
  if (input.fraction_bits > 24) return length * 0x1p-52;
  return growth * (input.fraction_bits > 10 ? 0x1p-23 : 0x1p-22);
}

double half_spacing(const formats::Format& format, double x) {
  int exponent = 0;
  std::frexp(x, &exponent);
  const int lowest = 1 - format.bias;
  return std::ldexp(0.5, (x == 0 ? lowest : std::max(exponent - 1, lowest)) - format.fraction_bits);
}

Disagreement disagreement(const ProductNumbers& x, const Expected& expected,
                          const RealMatrix* extra) {
  Disagreement result;
  result.at.resize(x.d.values.size());
  const double unit = x.rounding_unit();
  for (std::size_t i = 0; i < result.at.size(); ++i) {
    const double wanted = expected.result.values[i];
    if (!std::isfinite(wanted)) continue;
    const double allowed = half_spacing(x.output, wanted) * 1.0001 +
                           unit * expected.magnitude.values[i] +
                           (extra == nullptr ? 0 : extra->values[i]);
    if (std::abs(x.d.values[i] - wanted) <= allowed) continue;
    result.at[i] = true;
    ++result.count;
  }
  return result;
}

bool agrees(const ProductNumbers& x, const Expected& expected, const RealMatrix* extra) {
  return disagreement(x, expected, extra).count == 0;
}

bool is_rounded_once(const ProductNumbers& x) {
  const Expected asked = x.asked();
  // A double's own rounding error is below this part of the magnitude.
  const double blur = static_cast<double>(x.k() + 4) * 0x1p-53;
  for (std::size_t i = 0; i < x.d.values.size(); ++i) {
    const double wanted = asked.result.values[i];
    if (!(std::abs(x.d.values[i] - wanted) <=
          half_spacing(x.output, wanted) + blur * asked.magnitude.values[i]))
      return false;
  }
  return true;
}

}  // namespace guardbit::emulator
