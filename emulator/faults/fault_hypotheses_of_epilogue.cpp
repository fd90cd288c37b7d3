#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "emulator/faults/fault_hypotheses.hpp"
#include "emulator/gemm/scalar.hpp"
#include "formats/format_catalogue.hpp"
#include "formats/text.hpp"

namespace guardbit::emulator {

Expected changed(const ProductNumbers& x, double alpha, double beta, double constant) {
  Expected result = x.with_factors(alpha, beta);
  for (double& value : result.result.values) value += constant;
  for (double& value : result.magnitude.values) value += std::abs(constant);
  return result;
}

Fault activation_fault(std::string_view name) {
  return {.kind = FaultKind::activation,
          .name = std::string(name),
          .text = "D went through " + std::string(name)};
}

Fault range_fault(double least, double most) {
  return {.kind = FaultKind::clamped,
          .value = std::isfinite(most) ? most : least,
          .text = "D is limited to [" + text_of(least) + ", " + text_of(most) + "]"};
}

Fault missing_c_fault() {
  return {.kind = FaultKind::missing_c, .operand = "c", .text = "C is not added"};
}

double settled(double x, double noise) { return std::abs(x) < noise ? 0 : simple_near(x); }

double simple_near(double x) {
  if (x == 0) return 0;
  int exponent = 0;
  const double significand = std::frexp(x, &exponent);
  const double simple = std::ldexp(std::round(significand * 64) / 64, exponent);
  return std::abs(simple - x) < 1e-3 * std::abs(x) ? simple : x;
}

Fault alpha_fault(const ProductNumbers& x, double factor) {
  return {.kind = FaultKind::alpha,
          .value = factor,
          .text = "the product has the factor " + text_of(factor) +
                  ", not alpha = " + text_of(x.alpha)};
}

Faults changed_factors(const ProductNumbers& x, double alpha, double beta, double constant) {
  Faults faults;
  if (std::abs(alpha - x.alpha) > 1e-4 * std::abs(x.alpha)) faults.push_back(alpha_fault(x, alpha));
  if (!x.c.empty() && beta == 0 && x.beta != 0)
    faults.push_back(missing_c_fault());
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
  return faults;
}

Faults find_factors(const ProductNumbers& x) {
  const std::vector<double> ones(x.d.values.size(), 1.0);
  const std::vector<double> rest = x.d_without_bias();
  std::vector<const std::vector<double>*> columns = {&x.product.values, &ones};
  if (!x.c.empty()) columns.push_back(&x.c.values);
  // Integers at the ends of their range say nothing of a factor.
  const bool is_integer = formats::is_integer(x.output);
  const double most = scalar::decoded(x.output, formats::max_finite_code(x.output));
  const double least = x.output.has_sign ? -most : 0;
  std::vector<double> w = nearest_factors(columns, rest, [&](std::size_t i) {
    const double seen = x.d.values[i];
    return !x.is_hidden(i) && !(is_integer && (seen >= most || seen <= least));
  });
  // A C of zeros says nothing of its factor.
  if (!x.c.empty() && dot(x.c.values, x.c.values) == 0) w[2] = x.beta;
  const double alpha = settled(w[0], 1e-6 * std::abs(x.alpha)),
               beta = x.c.empty() ? 0 : settled(w[2], 3e-3);
  double size = 0;
  for (const double value : x.d.values) size += std::isfinite(value) ? std::abs(value) : 0;
  size /= static_cast<double>(x.d.values.size());
  const double constant = settled(w[1], 1e-3 * size);
  // What was asked comes first, as far as it explains D.
  for (const auto& [p, q, r] : {std::array{alpha, x.beta, 0.0},
                                {x.alpha, beta, 0.0},
                                {alpha, beta, constant},
                                {w[0], x.c.empty() ? 0 : w[2], w[1]}}) {
    Expected expected = changed(x, p, q, r);
    // A fitted factor is as exact as D's format and the number of outputs let it be.
    const double blur = 4 * std::ldexp(1.0, -1 - x.output.fraction_bits) /
                        std::sqrt(static_cast<double>(x.d.values.size()));
    const RealMatrix extra =
        mapped(expected.magnitude, [&](double value) { return (blur + 0x1p-20) * value; });
    if (!agrees(x, expected, &extra)) continue;
    const bool is_constant = std::abs(p) < 1e-6 * std::abs(x.alpha) && x.c.empty();
    if (is_constant) return {};
    return changed_factors(x, p, q, agrees(x, changed(x, p, q, 0), &extra) ? 0 : r);
  }
  return {};
}

Faults find_dropped_outputs(const ProductNumbers& x) {
  constexpr std::size_t fewest = 32;
  const Expected asked = x.asked();
  std::size_t zeros = 0, positive = 0, together = 0;
  // What a smooth activation makes zero was not dropped, but does not part zeros either.
  const auto is_blank = [&](std::size_t i) {
    return is_smooth(x.activation) ? x.is_zero(i) : x.d.values[i] == 0;
  };
  for (std::size_t i = 0; i < x.d.values.size(); ++i) {
    if (x.d.values[i] != 0) continue;
    ++zeros;
    together += i + 1 < x.d.values.size() && is_blank(i + 1) ? 1U : 0U;
    positive += asked.result.values[i] > 0 ? 1U : 0U;
  }
  const std::size_t all = x.d.values.size();
  if (zeros < fewest || zeros * 50 > all * 49 || positive * 8 < zeros || positive * 8 > zeros * 7)
    return {};
  // Tiles that were not written hold their zeros side by side.
  if (2 * together * all > zeros * (zeros + all)) return {};
  const double factor = simple_near(nearest_factors(
      {&asked.result.values}, x.d.values, [&](std::size_t i) { return x.d.values[i] != 0; })[0]);
  Expected expected = asked;
  for (std::size_t i = 0; i < all; ++i) {
    expected.result.values[i] *= x.d.values[i] == 0 ? 0 : factor;
    expected.magnitude.values[i] *= std::max(1.0, std::abs(factor));
  }
  // A fitted factor is as exact as D's format and the number of outputs let it be.
  const RealMatrix extra =
      mapped(expected.magnitude, [&](double value) { return 0x1p-20 * value; });
  if (!agrees(x, expected, &extra)) return {};
  Fault dropped{.kind = FaultKind::dropout,
                .value = static_cast<double>(zeros) / static_cast<double>(all),
                .operand = "d",
                .text = std::to_string(zeros) + " of " + std::to_string(all) +
                        " elements of D are zero, here and there"};
  if (factor != 1) dropped.text += "; the others have the factor " + text_of(factor);
  return {dropped};
}

Faults find_wrapping(const ProductNumbers& x) {
  const Expected asked = x.asked();
  const auto is_integer = [](double value) { return value == std::round(value); };
  if (!std::all_of(x.d.values.begin(), x.d.values.end(), is_integer) ||
      !std::all_of(asked.result.values.begin(), asked.result.values.end(), is_integer))
    return {};
  for (const int bits : {8, 16, 24, 32}) {
    const double modulus = std::ldexp(1.0, bits);
    bool fits = true;
    for (std::size_t i = 0; i < x.d.values.size() && fits; ++i)
      fits = std::fmod(x.d.values[i] - asked.result.values[i], modulus) == 0 &&
             std::abs(x.d.values[i]) < modulus;
    if (fits)
      return {{.kind = FaultKind::wrapped,
               .value = modulus,
               .text = "D is right modulo 2^" + std::to_string(bits) + ": integers of " +
                       std::to_string(bits) + " bits overflowed"}};
  }
  return {};
}

}  // namespace guardbit::emulator
