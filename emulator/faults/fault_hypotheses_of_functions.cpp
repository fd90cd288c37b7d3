#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "emulator/faults/fault_hypotheses.hpp"
#include "emulator/gemm/scalar.hpp"
#include "formats/format_catalogue.hpp"
#include "formats/text.hpp"

// Functions of each output that D went through.
namespace guardbit::emulator {

namespace {

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
    // Behind ReLU, what changes negative numbers alone changes nothing.
    const bool keeps_positive = activation.function(1) == 1 && activation.function(2) == 2;
    if (x.activation == Activation::relu && keeps_positive) continue;
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

/// A function that D went through before C, the bias or both were added, not after.
Faults function_before_addend(const ProductNumbers& x) {
  if (x.c.empty() && x.bias.empty()) return {};
  const Expected asked = x.asked(), product = x.product_alone();
  std::vector<std::pair<Expected, std::string>> inner = {{product, "C"}};
  if (x.c.empty()) inner[0].second = "the bias";
  if (!x.c.empty() && !x.bias.empty()) {
    ProductNumbers without_c = x, without_bias = x;
    without_c.c = {}, without_bias.bias = {};
    inner = {
        {product, "C and the bias"}, {without_bias.asked(), "the bias"}, {without_c.asked(), "C"}};
  }
  for (const auto& [before, added] : inner) {
    const Expected after = asked - before;
    for (const NamedFunction& activation : activations) {
      Expected expected = through(activation, before);
      const RealMatrix extra = rounded_before(activation, x, before);
      for (std::size_t i = 0; i < expected.result.values.size(); ++i) {
        expected.result.values[i] += after.result.values[i];
        expected.magnitude.values[i] += after.magnitude.values[i];
      }
      if (!is_told(x, expected) || !agrees(x, expected, &extra) || agrees(x, asked, &extra))
        continue;
      Fault fault = activation_fault(activation.name);
      fault.text = "the product went through " + fault.name + " before " + added + " was added";
      return {fault};
    }
  }
  return {};
}

/// The factors of the product and of C with which D is nearest to a function of their sum, by
/// Newton's method for least squares from many factors of the product: on a few outputs from each,
/// on more from the best.
class InnerFactors {
 public:
  InnerFactors(const ProductNumbers& x, double (*function)(double)) : function_(function) {
    constexpr std::int64_t few = 64, most = 256;
    const RealMatrix bias = x.with_factors(0, 0).result;
    std::vector<std::int64_t> told;
    for (std::int64_t i = 0; i < x.m() * x.n(); ++i)
      if (!x.is_hidden(static_cast<std::size_t>(i)) &&
          std::isfinite(x.d.values[static_cast<std::size_t>(i)]))
        told.push_back(i);
    const auto take = [&](std::int64_t outputs) {
      outputs_.clear();
      for (const std::int64_t at : spread(std::ssize(told), outputs)) {
        const auto i = static_cast<std::size_t>(told[static_cast<std::size_t>(at)]);
        outputs_.push_back(
            {x.product.values[i], x.c.empty() ? 0 : x.c.values[i], bias.values[i], x.d.values[i]});
      }
    };
    has_c_ = !x.c.empty();
    take(few);
    for (int half_octaves = -10; half_octaves <= 10; ++half_octaves)
      for (const double sign : {1.0, -1.0}) {
        const double factor = sign * std::exp2(0.5 * half_octaves);
        improve({factor * x.alpha, factor * x.beta}, 2);
        improve({factor * x.alpha, x.beta}, 2);
      }
    take(most);
    least_ = std::numeric_limits<double>::infinity();
    improve(best_, 20);
  }
  double alpha() const { return best_.alpha; }
  double beta() const { return best_.beta; }
  /// The part of the squares of D's outputs that is left.
  double left() const { return least_; }

 private:
  struct Factors {
    double alpha = 0, beta = 0;
  };
  struct OutputTerms {
    double product, c, bias, seen;
  };

  double square_of_rest(const Factors& f) const {
    double left = 0, all = 0;
    for (const OutputTerms& o : outputs_) {
      const double rest = o.seen - function_(f.alpha * o.product + f.beta * o.c + o.bias);
      left += rest * rest, all += o.seen * o.seen;
    }
    return all > 0 && std::isfinite(left) ? left / all : std::numeric_limits<double>::infinity();
  }
  void improve(Factors f, int steps);

  double (*function_)(double);
  std::vector<OutputTerms> outputs_;
  bool has_c_ = false;
  Factors best_;
  double least_ = std::numeric_limits<double>::infinity();
};

void InnerFactors::improve(Factors f, int steps) {
  for (int step = 0; step <= steps; ++step) {
    const double left = square_of_rest(f);
    if (left < least_) least_ = left, best_ = f;
    // The normal equations of the two factors.
    double pp = 0, pc = 0, cc = 0, p = 0, c = 0;
    for (const OutputTerms& o : outputs_) {
      const double at = f.alpha * o.product + f.beta * o.c + o.bias, by = 1e-6 * (1 + std::abs(at)),
                   value = function_(at),
                   slope = (function_(at + by) - function_(at - by)) / (2 * by);
      const double of_p = slope * o.product, of_c = slope * o.c, rest = o.seen - value;
      pp += of_p * of_p, pc += of_p * of_c, cc += of_c * of_c, p += of_p * rest, c += of_c * rest;
    }
    const double determinant = has_c_ ? pp * cc - pc * pc : pp;
    if (!(determinant > 0)) return;
    f.alpha += has_c_ ? (p * cc - c * pc) / determinant : p / pp;
    f.beta += has_c_ ? (c * pp - p * pc) / determinant : 0;
    if (!std::isfinite(f.alpha) || !std::isfinite(f.beta)) return;
  }
}

/// A function after other factors than those that were asked for.
Faults function_of_factors(const ProductNumbers& x) {
  constexpr std::size_t fewest = 64;
  constexpr double most_left = 1e-3, most_factor = 64;
  if (x.d.values.size() < fewest || formats::is_integer(x.output)) return {};
  Faults best;
  double least = std::numeric_limits<double>::infinity();
  for (const NamedFunction& activation : activations) {
    const InnerFactors fitted(x, activation.function);
    const double larger = std::abs(fitted.alpha() / x.alpha);
    const bool is_likely =
        fitted.left() < most_left && larger > 1 / most_factor && larger < most_factor;
    if (!is_likely || !(fitted.left() < least)) continue;
    const double alpha = simple_near(fitted.alpha()),
                 beta = x.c.empty() ? 0 : settled(fitted.beta(), 3e-3);
    const Expected inner = changed(x, alpha, beta, 0), expected = through(activation, inner);
    const RealMatrix extra = rounded_before(activation, x, inner);
    if (!is_told(x, expected) || !agrees(x, expected, &extra) || agrees(x, inner, &extra)) continue;
    Faults factors = changed_factors(x, alpha, beta, 0);
    if (factors.empty()) continue;
    factors.insert(factors.begin(), activation_fault(activation.name));
    best = std::move(factors), least = fitted.left();
  }
  return best;
}

}  // namespace

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
  if (Faults faults = function_before_addend(x); !faults.empty()) return faults;
  if (Faults faults = function_of_factors(x); !faults.empty()) return faults;
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

}  // namespace guardbit::emulator
