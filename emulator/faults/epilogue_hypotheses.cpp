#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>
#include <numeric>
#include <utility>

#include "emulator/faults/hypotheses.hpp"
#include "emulator/gemm/scalar.hpp"
#include "formats/format_catalogue.hpp"
#include "formats/text.hpp"

namespace guardbit::emulator {

namespace {

std::string text_of(double x) {
  char text[40];
  std::snprintf(text, sizeof text, "%.6g", x);
  return text;
}

/// The factors of these columns whose sum is nearest to y.
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
  return solve_symmetric(std::move(squares), std::move(right));
}

/// The number of at most six bits near x, if there is one.
double simple_near(double x) {
  if (x == 0) return 0;
  int exponent = 0;
  const double significand = std::frexp(x, &exponent);
  const double simple = std::ldexp(std::round(significand * 64) / 64, exponent);
  return std::abs(simple - x) < 1e-3 * std::abs(x) ? simple : x;
}

/// Candidates for a fitted number: zero, a simple one, itself.
double settled(double x, double noise) { return std::abs(x) < noise ? 0 : simple_near(x); }

void name_factors(const ProductNumbers& x, double alpha, double beta, double constant,
                  Faults& faults) {
  if (std::abs(alpha - x.alpha) > 1e-4 * std::abs(x.alpha))
    faults.push_back({.kind = FaultKind::alpha,
                      .value = alpha,
                      .text = "the product has the factor " + text_of(alpha) +
                              ", not alpha = " + text_of(x.alpha)});
  if (!x.c.empty() && beta == 0 && x.beta != 0)
    faults.push_back({.kind = FaultKind::missing_c, .operand = "c", .text = "C is not added"});
  else if (!x.c.empty() && std::abs(beta - x.beta) > 1e-4 * std::abs(x.beta))
    faults.push_back(
        {.kind = FaultKind::beta,
         .value = beta,
         .operand = "c",
         .text = "C has the factor " + text_of(beta) + ", not beta = " + text_of(x.beta)});
  if (constant != 0)
    faults.push_back({.kind = FaultKind::constant,
                      .value = constant,
                      .text = "the constant " + text_of(constant) + " is added to every element"});
}

/// alpha * product + beta * c + bias + constant.
Expected changed(const ProductNumbers& x, double alpha, double beta, double constant) {
  Expected result = x.with_factors(alpha, beta);
  for (double& value : result.result.values) value += constant;
  for (double& value : result.magnitude.values) value += std::abs(constant);
  return result;
}

double gelu(double x) { return 0.5 * x * std::erfc(-x / std::numbers::sqrt2); }
double gelu_by_tanh(double x) {
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
}

struct Activation {
  const char* name;
  double (*function)(double);
};

constexpr Activation activations[] = {
    {"relu", [](double x) { return std::max(x, 0.0); }},
    {"gelu", gelu},
    {"gelu_tanh", gelu_by_tanh},
    {"silu", [](double x) { return x / (1 + std::exp(-x)); }},
    {"tanh", [](double x) { return std::tanh(x); }},
    {"sigmoid", [](double x) { return 1 / (1 + std::exp(-x)); }},
    {"abs", [](double x) { return std::abs(x); }},
    {"square", [](double x) { return x * x; }},
    {"exp", [](double x) { return std::exp(x); }},
};

/// The function of every result; the magnitude grows as the function's slope does.
Expected through(const Activation& activation, const Expected& x) {
  Expected y = x;
  for (std::size_t i = 0; i < x.result.values.size(); ++i) {
    const double at = x.result.values[i], step = 1e-6 * (1 + std::abs(at));
    const double slope =
        std::abs(activation.function(at + step) - activation.function(at - step)) / (2 * step);
    y.result.values[i] = activation.function(at);
    // Approximate functions are right to some units of FP32 in their argument and result.
    y.magnitude.values[i] = slope * x.magnitude.values[i] + 8 * std::abs(y.result.values[i]) + 1e-2;
  }
  return y;
}

Fault activation_fault(const char* name) {
  return {
      .kind = FaultKind::activation, .name = name, .text = std::string("D went through ") + name};
}

}  // namespace

Faults find_factors(const ProductNumbers& x) {
  const std::vector<double> ones(x.d.values.size(), 1.0);
  std::vector<double> rest = x.d.values;
  if (!x.bias.empty())
    for (std::size_t i = 0; i < rest.size(); ++i)
      rest[i] -= x.bias.values[x.bias.rows == 1 ? i % static_cast<std::size_t>(x.n()) : i];
  std::vector<const std::vector<double>*> columns = {&x.product.values, &ones};
  if (!x.c.empty()) columns.push_back(&x.c.values);
  const std::vector<double> w = nearest_factors(columns, rest, [](std::size_t) { return true; });
  const double alpha = simple_near(w[0]), beta = x.c.empty() ? 0 : settled(w[2], 3e-3);
  double size = 0;
  for (const double value : x.d.values) size += std::isfinite(value) ? std::abs(value) : 0;
  size /= static_cast<double>(x.d.values.size());
  const double constant = settled(w[1], 1e-3 * size);
  for (const auto& [p, q, r] :
       {std::array{alpha, beta, constant}, {w[0], x.c.empty() ? 0 : w[2], w[1]}}) {
    Expected expected = changed(x, p, q, r);
    // A fitted factor is as exact as D's format and the number of outputs let it be.
    const double blur = 4 * std::ldexp(1.0, -1 - x.output.fraction_bits) /
                        std::sqrt(static_cast<double>(x.d.values.size()));
    const RealMatrix extra =
        mapped(expected.magnitude, [&](double value) { return (blur + 0x1p-20) * value; });
    if (!agrees(x, expected, &extra)) continue;
    Faults faults;
    name_factors(x, p, q, std::abs(r) < 1e-3 * size ? 0 : r, faults);
    return faults;
  }
  // A number for each column, or for each row: the median of what is left.
  const Expected asked = x.asked();
  for (const bool by_column : {true, false}) {
    const std::int64_t lines = by_column ? x.n() : x.m(), length = by_column ? x.m() : x.n();
    if (length < 6) continue;
    Expected expected = asked;
    double clearest = 0;  // median, in spacings of its line
    std::vector<double> medians;
    std::vector<double> left(static_cast<std::size_t>(length));
    for (std::int64_t line = 0; line < lines; ++line) {
      const auto at = [&](std::int64_t i) {
        return by_column ? std::pair(i, line) : std::pair(line, i);
      };
      for (std::int64_t i = 0; i < length; ++i) {
        const auto [row, column] = at(i);
        left[static_cast<std::size_t>(i)] = x.d(row, column) - asked.result(row, column);
      }
      std::nth_element(left.begin(), left.begin() + length / 2, left.end());
      const double median = left[static_cast<std::size_t>(length / 2)];
      medians.push_back(median);
      for (std::int64_t i = 0; i < length; ++i) {
        const auto [row, column] = at(i);
        expected.result(row, column) += median;
        expected.magnitude(row, column) += std::abs(median);
      }
    }
    // A median is as exact as D's format is in the line.
    RealMatrix extra(x.m(), x.n());
    for (std::int64_t line = 0; line < lines; ++line) {
      double spacing = 0;
      for (std::int64_t i = 0; i < length; ++i)
        spacing += by_column ? half_spacing(x.output, expected.result(i, line))
                             : half_spacing(x.output, expected.result(line, i));
      for (std::int64_t i = 0; i < length; ++i)
        (by_column ? extra(i, line) : extra(line, i)) = spacing / static_cast<double>(length);
      clearest = std::max(clearest, std::abs(medians[static_cast<std::size_t>(line)]) *
                                        static_cast<double>(length) / spacing);
    }
    if (clearest > 4 && agrees(x, expected, &extra))
      return {{.kind = FaultKind::bias,
               .name = by_column ? "columns" : "rows",
               .text = std::string("a number for each ") + (by_column ? "column" : "row") +
                       " is added"}};
  }
  return {};
}

Faults find_activation(const ProductNumbers& x) {
  const Expected asked = x.asked();
  for (const Activation& activation : activations) {
    const Expected expected = through(activation, asked);
    if (agrees(x, expected)) return {activation_fault(activation.name)};
    const double factor = simple_near(nearest_factors({&expected.result.values}, x.d.values,
                                                      [](std::size_t) { return true; })[0]);
    if (factor == 0 || !std::isfinite(factor)) continue;
    const auto scaled = [&](double value) { return factor * value; };
    const auto scaled_size = [&](double value) { return std::abs(factor) * value; };
    if (agrees(x, {mapped(expected.result, scaled), mapped(expected.magnitude, scaled_size)}))
      return {activation_fault(activation.name),
              {.kind = FaultKind::alpha,
               .value = factor,
               .text = "the result of the function has the factor " + text_of(factor)}};
  }
  const auto on_side = [&](bool positive) {
    return [&, positive](std::size_t i) { return (asked.result.values[i] > 0) == positive; };
  };
  // Two slopes: leaky ReLU.
  const double above = nearest_factors({&asked.result.values}, x.d.values, on_side(true))[0];
  const double below = nearest_factors({&asked.result.values}, x.d.values, on_side(false))[0];
  const auto bent = [&](double value) { return value * (value > 0 ? simple_near(above) : below); };
  if (std::abs(above - 1) < 1e-3 && std::abs(below) < 0.9 &&
      agrees(x, {mapped(asked.result, bent), asked.magnitude}))
    return {{.kind = FaultKind::activation,
             .value = below,
             .name = "leaky_relu",
             .text = "D went through a leaky ReLU with the slope " + text_of(below)}};
  // ReLU after other factors: those of the positive outputs.
  if (std::all_of(x.d.values.begin(), x.d.values.end(), [](double value) { return value >= 0; })) {
    std::vector<const std::vector<double>*> columns = {&x.product.values};
    if (!x.c.empty()) columns.push_back(&x.c.values);
    const std::vector<double> w =
        nearest_factors(columns, x.d.values, [&](std::size_t i) { return x.d.values[i] > 0; });
    const double alpha = simple_near(w[0]), beta = x.c.empty() ? 0 : settled(w[1], 3e-3);
    if (agrees(x, through(activations[0], changed(x, alpha, beta, 0)))) {
      Faults faults = {activation_fault("relu")};
      name_factors(x, alpha, beta, 0, faults);
      return faults;
    }
  }
  // A range.
  const auto [low, high] = std::minmax_element(x.d.values.begin(), x.d.values.end());
  const double infinite = std::numeric_limits<double>::infinity();
  for (const auto& [least, most] : {std::pair{*low, *high}, {*low, infinite}, {-infinite, *high}}) {
    const auto at_ends = std::count_if(x.d.values.begin(), x.d.values.end(), [&](double value) {
      return value == least || value == most;
    });
    if (at_ends < 4) continue;
    const double least_ = least, most_ = most;
    if (agrees(x, {mapped(asked.result,
                          [=](double value) { return std::clamp(value, least_, most_); }),
                   asked.magnitude}))
      return {{.kind = FaultKind::clamped,
               .value = std::isfinite(most) ? most : least,
               .text = "D is limited to [" + text_of(least) + ", " + text_of(most) + "]"}};
  }
  return {};
}

Faults find_output_conversion(const ProductNumbers& x) {
  constexpr std::int64_t fewest = 24;
  const Expected asked = x.asked();
  const bool is_right = agrees(x, asked);
  for (const auto& format : {formats::fp16, formats::bf16, formats::e4m3, formats::e5m2}) {
    // How many outputs the format holds although their exact values are others, and whether it
    // holds all.
    std::int64_t held = 0;
    bool holds_all = true;
    for (std::size_t i = 0; i < x.d.values.size() && holds_all; ++i) {
      const double value = x.d.values[i], exact = asked.result.values[i];
      if (!std::isfinite(value)) continue;
      holds_all = scalar::rounded(format, value) == value;
      if (std::abs(exact - scalar::rounded(format, exact)) > 0.1 * half_spacing(format, exact))
        ++held;
    }
    const bool is_narrower = format.fraction_bits < x.output.fraction_bits;
    const RealMatrix spacing =
        mapped(asked.result, [&](double value) { return half_spacing(format, value); });
    const RealMatrix twice = mapped(spacing, [](double value) { return 2 * value; });
    const std::string name = formats::name_of(format);
    const auto fault = [&](const char* operand, const std::string& text) {
      return Faults{
          {.kind = FaultKind::converted_output, .operand = operand, .name = name, .text = text}};
    };
    if (is_narrower && holds_all && held >= fewest) {
      if (agrees(x, asked, &spacing)) return fault("d", "D was rounded to " + name + " and back");
      if (agrees(x, asked, &twice)) return fault("d", "D was truncated to " + name + " and back");
    }
    if (is_right || format.fraction_bits < 7) continue;
    if (!is_narrower && format != x.output && agrees(x, asked, &spacing))
      return fault("d", "D was rounded to " + name + " before it was rounded to its own format");
    if (x.c.empty() || holds_all) continue;
    const RealMatrix of_product = mapped(x.product, [&](double value) {
      return 1.001 * std::abs(x.alpha) * half_spacing(format, value);
    });
    if (agrees(x, asked, &of_product))
      return fault("product", "the product was rounded to " + name + " before C was added");
  }
  return {};
}

Faults find_narrow_accumulator(const ProductNumbers& x) {
  const Expected asked = x.asked();
  for (const auto& format : {formats::fp16, formats::bf16}) {
    if (format.fraction_bits >= x.output.fraction_bits && format != x.output) continue;
    const double unit =
        std::ldexp(1.5, -1 - format.fraction_bits) * std::sqrt(static_cast<double>(x.k()));
    const RealMatrix extra = mapped(asked.magnitude, [&](double value) { return unit * value; });
    // Noise, and not one side of it: the errors of most outputs are far from zero.
    if (!agrees(x, asked, &extra)) continue;
    const Disagreement wrong = disagreement(x, asked);
    if (wrong.count * 4 < std::ssize(x.d.values)) continue;
    return {{.kind = FaultKind::narrow_accumulator,
             .name = formats::name_of(format),
             .text = "errors are as large as those of sums kept in " + formats::name_of(format)}};
  }
  return {};
}

}  // namespace guardbit::emulator
