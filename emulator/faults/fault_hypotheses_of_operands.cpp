#include <algorithm>
#include <cmath>
#include <optional>
#include <tuple>
#include <utility>

#include "emulator/faults/fault_hypotheses.hpp"
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

/// Rounds to the format's precision, ties away from zero.
double rounded_away(const formats::Format& format, double x) {
  const double spacing = 2 * half_spacing(format, x);
  return std::isfinite(x) ? std::round(x / spacing) * spacing : x;
}

double to_significant_bits(int bits, double x) {
  int exponent = 0;
  const double significand = std::frexp(x, &exponent);
  return std::isfinite(x)
             ? std::ldexp(std::nearbyint(std::ldexp(significand, bits)), exponent - bits)
             : x;
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
  // The value that is fitted is as exact as D's format lets it be.
  RealMatrix blur(x.m(), x.n());
  for (const std::int64_t i : rows) {
    std::vector<double> error(static_cast<std::size_t>(x.n()));
    for (std::int64_t j = 0; j < x.n(); ++j)
      error[static_cast<std::size_t>(j)] = x.d(i, j) - expected.result(i, j);
    if (!std::all_of(error.begin(), error.end(), [](double e) { return std::isfinite(e); }))
      return {};
    const auto best = best_change(error, x.b);
    if (!best) return {};
    const double old = x.a(i, best->k), fitted = old + best->change / x.alpha;
    double square = 0, roundings = 0;
    for (std::int64_t j = 0; j < x.n(); ++j) {
      square += x.b(best->k, j) * x.b(best->k, j);
      roundings += std::pow(x.rounding_of_d(x.d(i, j)), 2);
    }
    const double spread_of_fit =
        3 * std::sqrt(roundings) / square * std::sqrt(square / static_cast<double>(x.n()));
    const double used = likely_value(x.input, fitted, old, spread_of_fit);
    for (std::int64_t j = 0; j < x.n(); ++j) {
      blur(i, j) = x.rounding_of_d(x.d(i, j)) + spread_of_fit * std::abs(x.b(best->k, j));
      const double change = x.alpha * (used - old) * x.b(best->k, j);
      expected.result(i, j) += change;
      expected.magnitude(i, j) += std::abs(change);
    }
    const std::int64_t line = x.rows(i);
    const std::int64_t row = is_transposed ? best->k : line,
                       column = is_transposed ? line : best->k;
    faults.push_back({.kind = FaultKind::wrong_element,
                      .k = {{best->k, best->k + 1}},
                      .rows = {{row, row + 1}},
                      .columns = {{column, column + 1}},
                      .value = used,
                      .operand = is_transposed ? "b" : "a",
                      .text = std::string("element [") + std::to_string(row) + ", " +
                              std::to_string(column) + "] of " + (is_transposed ? "B" : "A") +
                              " was taken as " + text_of(used, 9) + ", not " + text_of(old, 9)});
  }
  return agrees(x, expected, &blur) ? faults : Faults{};
}

/// What operands went through before they were multiplied.
struct Conversion {
  enum class Way : std::uint8_t {
    nearest,
    truncated,
    ties_away,
    /// the sum of two numbers of the format
    two_pieces,
    /// to the format's significant bits alone, as if each number had a scale
    scaled
  };

  Format format;
  Way way = Way::nearest;

  double operator()(double x) const;
  /// What it did to these operands.
  std::string text(const std::string& which) const;
};

double Conversion::operator()(double x) const {
  switch (way) {
    case Way::nearest: break;
    case Way::truncated: return truncated(format, x);
    case Way::ties_away: return rounded_away(format, x);
    case Way::two_pieces: {
      const double first = scalar::rounded(format, x);
      return first + scalar::rounded(format, x - first);
    }
    case Way::scaled: return to_significant_bits(format.fraction_bits + 1, x);
  }
  return scalar::rounded(format, x);
}

std::string Conversion::text(const std::string& which) const {
  const std::string name = formats::name_of(format);
  const std::string how = way == Way::truncated    ? "truncated to " + name
                          : way == Way::two_pieces ? "taken as sums of two numbers in " + name
                          : way == Way::scaled
                              ? "rounded to " + std::to_string(format.fraction_bits + 1) +
                                    " significant bits, those of " + name + ","
                              : "rounded to " + name;
  return which + " " + how + " before they were multiplied";
}

/// From the one that changes least on.
constexpr Conversion input_conversions[] = {{formats::tf32},
                                            {formats::tf32, Conversion::Way::truncated},
                                            {formats::tf32, Conversion::Way::ties_away},
                                            {formats::fp16},
                                            {formats::bf16},
                                            {formats::bf16, Conversion::Way::truncated},
                                            {formats::bf16, Conversion::Way::two_pieces},
                                            {formats::e4m3},
                                            {formats::e4m3, Conversion::Way::truncated},
                                            {formats::e5m2},
                                            {formats::e5m2, Conversion::Way::truncated},
                                            {formats::e4m3, Conversion::Way::scaled},
                                            {formats::e5m2, Conversion::Way::scaled}};

/// Subnormal numbers of the operands' own format that are taken as zero.
Faults find_flushed_inputs(const ProductNumbers& x) {
  const double least = std::ldexp(1.0, 1 - x.input.bias);
  const auto flushed = [&](double value) { return std::abs(value) < least ? 0 : value; };
  for (const auto& [operand, of_a, of_b] :
       {std::tuple{"both", true, true}, {"a", true, false}, {"b", false, true}}) {
    const RealMatrix a = of_a ? mapped(x.a, flushed) : x.a, b = of_b ? mapped(x.b, flushed) : x.b;
    if ((of_a && a.values == x.a.values) || (of_b && b.values == x.b.values)) continue;
    if (!agrees(x, with_operands(x, a, b))) continue;
    const char* const which = of_a && of_b ? "A and B" : of_a ? "A" : "B";
    const std::string name = formats::name_of(x.input);
    return {{.kind = FaultKind::converted_input,
             .operand = operand,
             .name = name,
             .text = "subnormal " + name + " numbers of " + which + " were taken as zero"}};
  }
  return {};
}

}  // namespace

Faults find_input_conversion(const ProductNumbers& x) {
  if (formats::is_integer(x.input)) return {};
  // A few outputs refute most.
  const ProductNumbers few = x.selected(spread(x.m(), 12), spread(x.n(), 12));
  for (const Conversion& conversion : input_conversions) {
    if (conversion.format.fraction_bits >= x.input.fraction_bits) continue;
    const auto fits = [&](bool of_a, bool of_b) {
      for (const ProductNumbers* y : {&few, &x}) {
        const RealMatrix a = of_a ? mapped(y->a, conversion) : y->a,
                         b = of_b ? mapped(y->b, conversion) : y->b;
        if (a.values == y->a.values && b.values == y->b.values) return false;
        // The product of the two second pieces may be left out.
        const RealMatrix extra = mapped(y->product_magnitude, [&](double value) {
          return conversion.way == Conversion::Way::two_pieces ? std::abs(x.alpha) * 0x1p-16 * value
                                                               : 0;
        });
        if (!agrees(*y, with_operands(*y, a, b), &extra)) return false;
      }
      return true;
    };
    const auto fault = [&](const char* operand, const std::string& which) {
      return Faults{{.kind = FaultKind::converted_input,
                     .operand = operand,
                     .name = formats::name_of(conversion.format),
                     .text = conversion.text(which)}};
    };
    if (fits(true, true)) return fault("both", "A and B were");
    if (fits(true, false)) return fault("a", "elements of A were");
    if (fits(false, true)) return fault("b", "elements of B were");
  }
  return find_flushed_inputs(x);
}

Faults find_scaled_operand(const ProductNumbers& x) {
  if (x.alpha == 1 || formats::is_integer(x.input)) return {};
  // TF32 operands are FP32 numbers until a unit takes them.
  const Format format = x.input == formats::tf32 ? formats::fp32 : x.input;
  const double alpha = scalar::rounded(format, x.alpha);
  for (const bool of_a : {true, false}) {
    ProductNumbers y = x;
    RealMatrix& operand = of_a ? y.a : y.b;
    operand = mapped(operand, [&](double value) { return scalar::rounded(format, alpha * value); });
    y.alpha = 1;
    y.multiply_operands();
    const std::string name = formats::name_of(format);
    Faults faults = {{.kind = FaultKind::converted_input,
                      .operand = of_a ? "a" : "b",
                      .name = name,
                      .text = std::string(of_a ? "A" : "B") +
                              " was multiplied by alpha and rounded to " + name +
                              " before the product"}};
    if (agrees(y, y.asked())) return faults;
    Faults conversions = find_input_conversion(y);
    if (conversions.empty()) conversions = find_rounded_products(y);
    if (conversions.empty()) continue;
    faults.insert(faults.end(), conversions.begin(), conversions.end());
    return faults;
  }
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
  return wrong_elements_of_a(x.turned(), true);
}

}  // namespace guardbit::emulator
