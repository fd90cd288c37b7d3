#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "emulator/faults/hypotheses.hpp"
#include "emulator/gemm/scalar.hpp"
#include "formats/format_catalogue.hpp"
#include "formats/text.hpp"

namespace guardbit::emulator {

namespace {

/// The product of other operands.
Expected with_operands(const ProductNumbers& x, const RealMatrix& a, const RealMatrix& b) {
  ProductNumbers y = x;
  y.product = multiply(a, b);
  return y.asked();
}

/// Keeps the format's precision and drops what is below.
double truncated(const formats::Format& format, double x) {
  const double spacing = 2 * half_spacing(format, x);
  return std::isfinite(x) ? std::trunc(x / spacing) * spacing : x;
}

std::string number_text(double x) {
  char text[40];
  std::snprintf(text, sizeof text, "%.9g", x);
  return text;
}

/// One line of D and the operand element that makes it wrong: a column of B for a row of D.
struct LineFault {
  std::int64_t k = 0;
  double change = 0;
};

/// The k and the change of the line's own operand element with which the line's error is explained
/// best.
std::optional<LineFault> best_change(const std::vector<double>& error, const RealMatrix& others) {
  std::optional<LineFault> best;
  double most = 0;
  for (std::int64_t k = 0; k < others.rows; ++k) {
    double product = 0, square = 0;
    for (std::int64_t j = 0; j < others.columns; ++j) {
      product += others(k, j) * error[static_cast<std::size_t>(j)];
      square += others(k, j) * others(k, j);
    }
    if (square == 0 || product * product / square <= most) continue;
    most = product * product / square;
    best = {k, product / square};
  }
  return best;
}

/// Wrong elements of A, by the rows of D that they make wrong. For B the problem comes transposed.
Faults wrong_elements_of_a(const ProductNumbers& x, bool is_transposed) {
  constexpr std::size_t most_rows = 8;
  Expected expected = x.asked();
  const Disagreement wrong = disagreement(x, expected);
  std::vector<std::int64_t> rows;
  for (std::int64_t i = 0; i < x.m(); ++i)
    for (std::int64_t j = 0; j < x.n(); ++j)
      if (wrong.at[static_cast<std::size_t>(i * x.n() + j)]) {
        rows.push_back(i);
        break;
      }
  if (rows.empty() || rows.size() > most_rows || x.n() < 3) return {};
  Faults faults;
  for (const std::int64_t i : rows) {
    std::vector<double> error(static_cast<std::size_t>(x.n()));
    for (std::int64_t j = 0; j < x.n(); ++j)
      error[static_cast<std::size_t>(j)] = x.d(i, j) - expected.result(i, j);
    if (!std::all_of(error.begin(), error.end(), [](double e) { return std::isfinite(e); }))
      return {};
    const auto best = best_change(error, x.b);
    if (!best) return {};
    const double old = x.a(i, best->k), fitted = old + best->change / x.alpha;
    // The element has the operand's format; D's rounding may leave it between two of its numbers.
    double used = fitted;
    const double rounded = scalar::rounded(x.input, fitted);
    if (std::abs(rounded - fitted) < 0.02 * std::abs(best->change)) used = rounded;
    if (std::abs(fitted) < 0.01 * std::abs(best->change)) used = 0;
    if (std::abs(fitted + old) < 0.01 * std::abs(best->change)) used = -old;
    for (std::int64_t j = 0; j < x.n(); ++j) {
      const double change = x.alpha * (used - old) * x.b(best->k, j);
      expected.result(i, j) += change;
      expected.magnitude(i, j) += std::abs(change);
    }
    const std::int64_t row = is_transposed ? best->k : i, column = is_transposed ? i : best->k;
    faults.push_back({.kind = FaultKind::wrong_element,
                      .k = {{best->k, best->k + 1}},
                      .rows = {{row, row + 1}},
                      .columns = {{column, column + 1}},
                      .value = used,
                      .operand = is_transposed ? "b" : "a",
                      .text = std::string("element [") + std::to_string(row) + ", " +
                              std::to_string(column) + "] of " + (is_transposed ? "B" : "A") +
                              " was taken as " + number_text(used) + ", not " + number_text(old)});
  }
  // The value that was fitted is as exact as D's format lets it be.
  const RealMatrix extra =
      mapped(expected.result, [&](double value) { return half_spacing(x.output, value); });
  return agrees(x, expected, &extra) ? faults : Faults{};
}

ProductNumbers turned(const ProductNumbers& x) {
  ProductNumbers y = x;
  y.a = transposed(x.b);
  y.b = transposed(x.a);
  for (RealMatrix* all : {&y.c, &y.bias, &y.d, &y.product, &y.product_magnitude})
    if (!all->empty()) *all = transposed(*all);
  return y;
}

}  // namespace

Faults find_input_conversion(const ProductNumbers& x) {
  struct Conversion {
    formats::Format format;
    bool truncates;
  };
  const Conversion conversions[] = {{formats::tf32, false}, {formats::tf32, true},
                                    {formats::fp16, false}, {formats::bf16, false},
                                    {formats::bf16, true},  {formats::e4m3, false},
                                    {formats::e5m2, false}};
  for (const auto& [format, truncates] : conversions) {
    if (format.fraction_bits >= x.input.fraction_bits) continue;
    const auto convert = [&](double value) {
      return truncates ? truncated(format, value) : scalar::rounded(format, value);
    };
    const RealMatrix a = mapped(x.a, convert), b = mapped(x.b, convert);
    if (a.values == x.a.values && b.values == x.b.values) continue;
    const auto fault = [&](const char* operand, const std::string& which) {
      const std::string name = formats::name_of(format);
      return Fault{.kind = FaultKind::converted_input,
                   .operand = operand,
                   .name = name,
                   .text = which + (truncates ? " truncated to " : " rounded to ") + name +
                           " before they were multiplied"};
    };
    if (agrees(x, with_operands(x, a, b))) return {fault("both", "A and B were")};
    if (a.values != x.a.values && agrees(x, with_operands(x, a, x.b)))
      return {fault("a", "elements of A were")};
    if (b.values != x.b.values && agrees(x, with_operands(x, x.a, b)))
      return {fault("b", "elements of B were")};
  }
  return {};
}

Faults find_transposition(const ProductNumbers& x) {
  const auto fault = [](const char* operand, const char* name) {
    return Faults{{.kind = FaultKind::transposed,
                   .operand = operand,
                   .text = std::string(name) + " is transposed"}};
  };
  if (x.m() == x.n()) {
    const Expected asked = x.asked();
    if (agrees(x, {transposed(asked.result), transposed(asked.magnitude)})) return fault("d", "D");
    if (!x.c.empty()) {
      ProductNumbers y = x;
      y.c = transposed(x.c);
      if (agrees(x, y.asked())) return fault("c", "C");
    }
  }
  if (x.n() == x.k() && agrees(x, with_operands(x, x.a, transposed(x.b)))) return fault("b", "B");
  if (x.m() == x.k() && agrees(x, with_operands(x, transposed(x.a), x.b))) return fault("a", "A");
  return {};
}

Faults find_wrong_elements(const ProductNumbers& x) {
  const Disagreement wrong = disagreement(x, x.asked());
  if (wrong.count == 1) {
    const auto at = static_cast<std::int64_t>(std::find(wrong.at.begin(), wrong.at.end(), true) -
                                              wrong.at.begin());
    const std::int64_t i = at / x.n(), j = at % x.n();
    return {{.kind = FaultKind::wrong_element,
             .rows = {{i, i + 1}},
             .columns = {{j, j + 1}},
             .value = x.d(i, j),
             .operand = "d",
             .text = "element [" + std::to_string(i) + ", " + std::to_string(j) +
                     "] of D is wrong, and no other"}};
  }
  if (Faults faults = wrong_elements_of_a(x, false); !faults.empty()) return faults;
  return wrong_elements_of_a(turned(x), true);
}

}  // namespace guardbit::emulator
