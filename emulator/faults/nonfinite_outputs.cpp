#include "emulator/faults/nonfinite_outputs.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>

#include "emulator/faults/code_numbers.hpp"
#include "formats/format_catalogue.hpp"

namespace guardbit::emulator {

namespace {

/// [i]: row i of the matrix holds a NaN or an infinity.
std::vector<bool> nonfinite_rows(const CodeNumbers& x) {
  std::vector<bool> result;
  for (std::int64_t i = 0; i < x.rows(); ++i) result.push_back(!x.is_finite_row(i));
  return result;
}

/// D has what it should where the sum is NaN or infinite. A format without infinities has its
/// largest number, or NaN, in their place; smooth activations take the lowest infinity to zero or,
/// where they multiply zero by it, to NaN, and the other one to itself.
bool is_kept(Activation activation, const formats::Format& format, double seen, double wanted) {
  if (std::isnan(seen)) return true;
  if (std::isnan(wanted)) return false;
  if (wanted < 0 && activation == Activation::relu) return true;
  if (wanted < 0 && is_smooth(activation)) return seen == 0;
  if (std::isinf(seen) || !formats::has_infinity(format))
    return std::signbit(seen) == std::signbit(wanted);
  return false;
}

Fault fault_of(const std::vector<std::pair<std::int64_t, std::int64_t>>& outputs) {
  std::set<std::int64_t> rows, columns;
  for (const auto& [i, j] : outputs) rows.insert(i), columns.insert(j);
  Fault fault{.kind = FaultKind::not_a_number,
              .rows = places_of({rows.begin(), rows.end()}),
              .columns = places_of({columns.begin(), columns.end()}),
              .operand = "d"};
  fault.text = std::to_string(outputs.size()) +
               (outputs.size() == 1 ? " element of D is a number, or has the other sign,"
                                    : " elements of D are numbers, or have the other sign,") +
               " where the operands give NaN or infinity, in " + lines_of("row", fault.rows) +
               ", " + lines_of("column", fault.columns);
  return fault;
}

}  // namespace

bool is_looked_for_nonfinite(const GemmCapture& capture, const GemmProblem& problem) {
  return !problem.sparse_a && !capture.convolution && problem.scale_a.empty() &&
         problem.scale_b.empty() && !formats::is_integer(capture.d.format);
}

std::optional<LostNonfinite> find_lost_nonfinite(const GemmCapture& capture,
                                                 const GemmProblem& problem, std::int64_t g) {
  constexpr double most_products = 4e7;
  if (!is_looked_for_nonfinite(capture, problem)) return {};
  const CodeNumbers a(problem.a, g), b(problem.b, g), c(problem.c, g), bias(problem.bias, g),
      d(capture.d, g);
  const std::vector<bool> of_a = nonfinite_rows(a),
                          of_b = nonfinite_rows(CodeNumbers(problem.b.transposed(), g));
  const auto addend = [&](std::int64_t i, std::int64_t j) {
    const double of_c = c.empty() || capture.beta == 0 ? 0 : capture.beta * c(i, j);
    return of_c + (bias.empty() ? 0 : bias(0, j));
  };
  LostNonfinite lost;
  double work = 0;
  for (std::int64_t i = 0; i < problem.m() && work < most_products; ++i) {
    for (std::int64_t j = 0; j < problem.n() && work < most_products; ++j) {
      double wanted = addend(i, j);
      if (of_a[static_cast<std::size_t>(i)] || of_b[static_cast<std::size_t>(j)]) {
        if (capture.alpha == 0) continue;  // libraries need not multiply
        double sum = 0;
        for (std::int64_t k = 0; k < problem.k(); ++k) sum += a(i, k) * b(k, j);
        wanted += capture.alpha * sum;
        work += static_cast<double>(problem.k());
      }
      if (std::isfinite(wanted)) continue;
      if (!is_kept(capture.activation, capture.d.format, d(i, j), wanted))
        lost.outputs.emplace_back(i, j);
    }
  }
  if (lost.outputs.empty()) return {};
  lost.fault = fault_of(lost.outputs);
  return lost;
}

}  // namespace guardbit::emulator
