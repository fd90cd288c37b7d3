#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numbers>
#include <utility>

#include "emulator/faults/fault_hypotheses.hpp"
#include "emulator/gemm/scalar.hpp"
#include "formats/format_catalogue.hpp"
#include "formats/text.hpp"

namespace guardbit::emulator {

namespace {

/// Candidates for a fitted number: zero, a simple one, itself.
double settled(double x, double noise) { return std::abs(x) < noise ? 0 : simple_near(x); }

/// alpha * product + beta * c + bias + constant.
Expected changed(const ProductNumbers& x, double alpha, double beta, double constant) {
  Expected result = x.with_factors(alpha, beta);
  for (double& value : result.result.values) value += constant;
  for (double& value : result.magnitude.values) value += std::abs(constant);
  return result;
}

struct NamedFunction {
  const char* name;
  double (*function)(double);
};

constexpr NamedFunction activations[] = {
    {"relu", [](double x) { return activated_in_doubles(Activation::relu, x); }},
    {"gelu", [](double x) { return activated_in_doubles(Activation::gelu, x); }},
    {"gelu_tanh", [](double x) { return activated_in_doubles(Activation::gelu_tanh, x); }},
    {"silu", [](double x) { return activated_in_doubles(Activation::silu, x); }},
    {"tanh", [](double x) { return std::tanh(x); }},
    {"sigmoid", [](double x) { return 1 / (1 + std::exp(-x)); }},
    {"quick_gelu", [](double x) { return x / (1 + std::exp(-1.702 * x)); }},
    {"softplus", [](double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); }},
    {"mish",
     [](double x) { return x * std::tanh(std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x)))); }},
    {"elu", [](double x) { return x > 0 ? x : std::expm1(x); }},
    {"selu",
     [](double x) {
       return 1.0507009873554805 * (x > 0 ? x : 1.6732632423543772 * std::expm1(x));
     }},
    {"hardswish", [](double x) { return x * std::clamp(x + 3, 0.0, 6.0) / 6; }},
    {"hardsigmoid", [](double x) { return std::clamp(x + 3, 0.0, 6.0) / 6; }},
    {"squared_relu", [](double x) { return x > 0 ? x * x : 0; }},
    {"abs", [](double x) { return std::abs(x); }},
    {"square", [](double x) { return x * x; }},
    {"exp", [](double x) { return std::exp(x); }},
};

/// The function of every result; the magnitude grows as the function's slope does.
Expected through(const NamedFunction& activation, const Expected& x) {
  Expected y = x;
  double mean = 0;
  for (const double value : x.result.values)
    mean += std::abs(value) / static_cast<double>(x.result.values.size());
  const double least = 1e-2 * std::min(mean, 1.0);
  for (std::size_t i = 0; i < x.result.values.size(); ++i) {
    const double at = x.result.values[i], step = 1e-6 * (std::min(mean, 1.0) + std::abs(at));
    const double slope =
        std::abs(activation.function(at + step) - activation.function(at - step)) / (2 * step);
    y.result.values[i] = activation.function(at);
    // Approximate functions are right to some units of FP32 in their argument and result. What
    // cancels in them (1 + erf of a negative number) was rounded as a part of the argument.
    y.magnitude.values[i] =
        slope * x.magnitude.values[i] + 8 * std::abs(y.result.values[i]) + std::abs(at) + least;
  }
  return y;
}

/// How far the function of a result that is rounded to D's format first, as its factor may be, may
/// lie from that of the result.
RealMatrix rounded_before(const NamedFunction& activation, const ProductNumbers& x,
                          const Expected& asked) {
  return mapped(asked.result, [&](double at) {
    const double value = activation.function(at), half = 3.1 * half_spacing(x.output, at);
    return std::max(std::abs(activation.function(at + half) - value),
                    std::abs(activation.function(at - half) - value));
  });
}

/// True if D's format has most of what is expected, as what overflows agrees with everything, and
/// if it is not one number for all, as where a function has reached its limit.
bool is_told(const ProductNumbers& x, const Expected& expected) {
  const double largest = scalar::decoded(x.output, formats::max_finite_code(x.output));
  std::int64_t told = 0, all = 0;
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (std::size_t i = 0; i < expected.result.values.size(); ++i) {
    if (x.is_left_out(i)) continue;
    const double value = expected.result.values[i];
    ++all;
    told += std::abs(value) < largest ? 1 : 0;
    low = std::min(low, value), high = std::max(high, value);
  }
  return told * 8 >= all * 7 && !(high - low <= 1e-3 * std::max(std::abs(low), std::abs(high)));
}

/// Of the functions that D agrees with, the one that it lies nearest to; null if there is none.
const char* nearest_activation(const ProductNumbers& x, const Expected& asked) {
  const char* name = nullptr;
  double least = std::numeric_limits<double>::infinity();
  for (const NamedFunction& activation : activations) {
    const Expected expected = through(activation, asked);
    const RealMatrix extra = rounded_before(activation, x, asked);
    if (!is_told(x, expected) || !agrees(x, expected, &extra)) continue;
    // A function that is nearly its argument here is no reason for what is wrong.
    if (agrees(x, asked, &extra)) continue;
    double squares = 0;
    for (std::size_t i = 0; i < x.d.values.size(); ++i) {
      const double error = x.d.values[i] - expected.result.values[i];
      if (std::isfinite(error)) squares += error * error;
    }
    if (squares < least) least = squares, name = activation.name;
  }
  return name;
}

}  // namespace

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
  std::vector<double> w =
      nearest_factors(columns, rest, [&](std::size_t i) { return !x.is_hidden(i); });
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

Faults find_activation(const ProductNumbers& x) {
  const Expected asked = x.asked();
  if (const char* const name = nearest_activation(x, asked)) return {activation_fault(name)};
  for (const NamedFunction& activation : activations) {
    const Expected expected = through(activation, asked);
    const double factor = simple_near(nearest_factors({&expected.result.values}, x.d.values,
                                                      [](std::size_t) { return true; })[0]);
    const bool is_likely = std::abs(factor) > 0x1p-20 && std::abs(factor) < 0x1p20;
    if (!is_likely || !is_told(x, expected)) continue;
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
      Faults faults = changed_factors(x, alpha, beta, 0);
      faults.insert(faults.begin(), activation_fault("relu"));
      return faults;
    }
  }
  // A range.
  const auto [low, high] = std::minmax_element(x.d.values.begin(), x.d.values.end());
  const double infinite = std::numeric_limits<double>::infinity();
  for (const auto& range : {std::pair{*low, *high}, {*low, infinite}, {-infinite, *high}}) {
    const double least = range.first, most = range.second;
    const auto at_ends = std::count_if(x.d.values.begin(), x.d.values.end(), [&](double value) {
      return value == least || value == most;
    });
    if (at_ends < 4) continue;
    if (agrees(x,
               {mapped(asked.result, [=](double value) { return std::clamp(value, least, most); }),
                asked.magnitude}))
      return {range_fault(least, most)};
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

Faults find_softmax(const ProductNumbers& x) {
  const Expected asked = x.asked();
  for (const bool of_rows : {true, false}) {
    const ProductNumbers y = of_rows ? x : x.turned();
    Expected expected =
        of_rows ? asked : Expected{transposed(asked.result), transposed(asked.magnitude)};
    for (std::int64_t i = 0; i < y.m(); ++i) {
      double* const line = expected.result.row(i);
      double* const magnitude = expected.magnitude.row(i);
      const double largest = *std::max_element(line, line + y.n());
      double sum = 0;
      for (std::int64_t j = 0; j < y.n(); ++j) sum += std::exp(line[j] - largest);
      for (std::int64_t j = 0; j < y.n(); ++j) {
        line[j] = std::exp(line[j] - largest) / sum;
        magnitude[j] = line[j] * (magnitude[j] + 8);
      }
    }
    if (agrees(y, expected))
      return {{.kind = FaultKind::activation,
               .name = "softmax",
               .text = std::string("D went through softmax along its ") +
                       (of_rows ? "rows" : "columns")}};
  }
  return {};
}

Faults find_some_function(const ProductNumbers& x) {
  constexpr std::size_t fewest = 256;
  const Expected asked = x.asked();
  std::vector<std::pair<double, double>> pairs;
  for (std::size_t i = 0; i < x.d.values.size(); ++i)
    if (std::isfinite(asked.result.values[i]) && std::isfinite(x.d.values[i]))
      pairs.emplace_back(asked.result.values[i], x.d.values[i]);
  if (pairs.size() < fewest) return {};
  std::sort(pairs.begin(), pairs.end());
  // Outputs whose right values are neighbours should hold nearly the same.
  std::vector<double> steps;
  double mean_x = 0, mean_y = 0, xx = 0, xy = 0, yy = 0;
  for (std::size_t i = 0; i + 1 < pairs.size(); ++i)
    steps.push_back(std::abs(pairs[i + 1].second - pairs[i].second));
  for (const auto& [p, q] : pairs) mean_x += p, mean_y += q;
  const auto count = static_cast<double>(pairs.size());
  mean_x /= count, mean_y /= count;
  for (const auto& [p, q] : pairs) {
    xx += (p - mean_x) * (p - mean_x);
    xy += (p - mean_x) * (q - mean_y);
    yy += (q - mean_y) * (q - mean_y);
  }
  if (xx == 0) return {};
  // What no line through the pairs explains must be far more than the noise of neighbours.
  const double bent = std::sqrt(std::max(0.0, yy - xy * xy / xx) / count);
  double square = 0;
  std::sort(steps.begin(), steps.end());
  // A function may jump, here and there.
  steps.resize(steps.size() - static_cast<std::size_t>(std::sqrt(count)));
  for (const double step : steps) square += step * step;
  const double noise = std::sqrt(square / (2 * static_cast<double>(steps.size())));
  if (!(bent > 8 * noise)) return {};
  return {
      {.kind = FaultKind::activation,
       .name = "unknown",
       .text = "D is a function of the right result, element by element, that has no name here"}};
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
