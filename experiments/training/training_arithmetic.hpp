#pragma once

// Every operation of training that is no matrix product, defined once, element by element, for CPU
// and CUDA alike: host and device compile these functions from this text and get the same bits.
// They use IEEE 754's addition, subtraction, multiplication, division and square root alone, each
// rounded once (-ffp-contract=off, --fmad=false), in the order that is written here. Payloads of
// NaNs are the only thing that is left open.
//
// What a second implementation has to mirror beside this file: layout.hpp (where elements lie and
// which of them a window takes) and the order of operations in the layers' forward and backward
// functions. A tensor in a format narrower than FP32 holds numbers of that format: what these
// functions give in FP32 is rounded to nearest even when it is stored.

#include <bit>
#include <cmath>
#include <cstdint>

namespace guardbit::experiments::training {

/// e^x of a double from -700 to 700, to about 2e-16. x = n ln 2 + r with |r| <= ln(2)/2, where
/// adding and subtracting 1.5 * 2^52 rounds to an integer; Taylor's polynomial of degree 13.
constexpr double exponential_of(double x) {
  constexpr double integer_shift = 0x1.8p52;
  constexpr double ln2_high = 0x1.62e42fee00000p-1, ln2_low = 0x1.a39ef35793c76p-33;
  const double n = (x * 0x1.71547652b82fep0 + integer_shift) - integer_shift;
  const double r = (x - n * ln2_high) - n * ln2_low;
  constexpr double inverse_factorials[] = {1.0 / 6227020800,
                                           1.0 / 479001600,
                                           1.0 / 39916800,
                                           1.0 / 3628800,
                                           1.0 / 362880,
                                           1.0 / 40320,
                                           1.0 / 5040,
                                           1.0 / 720,
                                           1.0 / 120,
                                           1.0 / 24,
                                           1.0 / 6,
                                           1.0 / 2,
                                           1.0,
                                           1.0};
  double sum = 0.0;
  for (const double c : inverse_factorials) sum = sum * r + c;
  return sum * std::bit_cast<double>(static_cast<std::int64_t>(n + 1023.0) << 52);
}

/// e^x, rounded to FP32.
constexpr float exponential(float x) {
  if (x != x) return x;
  if (x < -110.0F) return 0.0F;
  if (x > 89.0F) return std::bit_cast<float>(0x7f800000U);
  return static_cast<float>(exponential_of(x));
}

/// ln x, rounded to FP32. x = m 2^n with m in [sqrt(1/2), sqrt(2)); ln m = 2 artanh((m-1)/(m+1)).
constexpr float logarithm_of(float x) {
  if (x != x || x == std::bit_cast<float>(0x7f800000U)) return x;
  if (x == 0.0F) return -std::bit_cast<float>(0x7f800000U);
  if (x < 0.0F) return std::bit_cast<float>(0x7fc00000U);
  const auto bits = std::bit_cast<std::uint64_t>(static_cast<double>(x));
  int n = static_cast<int>(bits >> 52) - 1023;
  double m = std::bit_cast<double>((bits & 0xfffffffffffffU) | 0x3ff0000000000000U);
  if (m >= 0x1.6a09e667f3bcdp0) {
    m *= 0.5;
    ++n;
  }
  const double s = (m - 1.0) / (m + 1.0), z = s * s;
  double sum = 0.0;
  for (int i = 23; i > 1; i -= 2) sum = z * (1.0 / i + sum);
  return static_cast<float>(n * 0x1.62e42fefa39efp-1 + 2.0 * s * (1.0 + sum));
}

/// tanh of a double; cubic near zero, where 1 - 2/(e^2x + 1) cancels.
constexpr double hyperbolic_tangent(double x) {
  if (x != x) return x;
  if (x > 20.0) return 1.0;
  if (x < -20.0) return -1.0;
  if (x > -0x1p-10 && x < 0x1p-10) return x - x * x * x / 3.0;
  return 1.0 - 2.0 / (exponential_of(2.0 * x) + 1.0);
}

/// Square root as IEEE 754 has it.
constexpr float square_root(float x) { return std::sqrt(x); }

/// Sums are cut into runs of this many elements, each added in ascending order to zero; the runs'
/// sums are then added likewise.
inline constexpr std::int64_t sum_run = 256;

/// The sum of at(0) to at(count - 1) in FP32.
template <class At>
constexpr float run_sum(std::int64_t count, At at) {
  float total = 0.0F;
  for (std::int64_t begin = 0; begin < count; begin += sum_run) {
    const std::int64_t end = begin + sum_run < count ? begin + sum_run : count;
    float part = 0.0F;
    for (std::int64_t i = begin; i < end; ++i) part += at(i);
    total += part;
  }
  return total;
}

/// What leaves a product: the unit's sum times the operands' scales (1 where they have none), and
/// a bias where the layer has one. With both, one fused multiply-add, as libraries' epilogues do.
constexpr float product_result(float sum, float scale) { return scale == 1.0F ? sum : sum * scale; }
constexpr float product_result(float sum, float scale, float bias) {
  return scale == 1.0F ? sum + bias : std::fma(scale, sum, bias);
}

constexpr float relu(float x) { return x > 0.0F || x != x ? x : 0.0F; }
/// From relu's result.
constexpr float relu_gradient(float y, float gradient) { return y > 0.0F ? gradient : 0.0F; }

/// GELU by its tanh approximation (Hendrycks and Gimpel 2016).
constexpr double gelu_argument(double x) {
  return 0.7978845608028654 * (x + 0.044715 * x * x * x);  // sqrt(2/pi)
}
constexpr float gelu(float x) {
  return static_cast<float>(0.5 * x * (1.0 + hyperbolic_tangent(gelu_argument(x))));
}
constexpr float gelu_gradient(float x, float gradient) {
  const double t = hyperbolic_tangent(gelu_argument(x));
  const double inner = 0.7978845608028654 * (1.0 + 3.0 * 0.044715 * x * x);
  return static_cast<float>(gradient * (0.5 * (1.0 + t) + 0.5 * x * (1.0 - t * t) * inner));
}

/// Does `x` take the place of the maximum so far in a window? A NaN does, and stays.
constexpr bool becomes_maximum(float x, float maximum) {
  return static_cast<int>(x > maximum) + static_cast<int>(x != x) != 0;  // without a branch
}

/// A row of numbers turned into weights that sum to 1: e^(x_i - max) / sum, with the sum by
/// run_sum of the exponentials. `at(i)` reads, `put(i, e)` keeps the exponentials, which the caller
/// divides. Returns their sum; `maximum` is set.
template <class At, class Put>
constexpr float softmax_sum(std::int64_t count, float& maximum, At at, Put put) {
  maximum = at(0);
  for (std::int64_t i = 1; i < count; ++i)
    if (becomes_maximum(at(i), maximum)) maximum = at(i);
  return run_sum(count, [&](std::int64_t i) {
    const float e = exponential(at(i) - maximum);
    put(i, e);
    return e;
  });
}

/// The loss of one row: -ln softmax(x)[label].
constexpr float cross_entropy(float sum, float maximum, float at_label) {
  return logarithm_of(sum) - (at_label - maximum);
}
/// Its gradient by x_i; `factor` is the loss scale over the number of rows, one FP32 division.
constexpr float cross_entropy_gradient(float exponential_i, float sum, bool is_label,
                                       float factor) {
  return (exponential_i / sum - (is_label ? 1.0F : 0.0F)) * factor;
}

/// Gradient of softmax: y_i (g_i - sum_j y_j g_j), the sum by run_sum.
constexpr float softmax_gradient(float y, float gradient, float weighted_sum) {
  return y * (gradient - weighted_sum);
}

/// Normalisation of a row of n numbers: d = x - run_sum(x) / n (or x itself), then d times this of
/// run_sum(d d) / n.
constexpr float inverse_deviation(float mean_square) {
  return 1.0F / square_root(mean_square + 1e-5F);
}
/// Gradient by x, from the normalised x, its row's inverse deviation, g = gradient * weight and the
/// row's means run_sum(g) / n (0 where no mean was taken off) and run_sum(g x) / n.
constexpr float normalisation_gradient(float g, float x, float mean_g, float mean_gx,
                                       float inverse) {
  return (g - mean_g - x * mean_gx) * inverse;
}

/// A scaled gradient made ready for the optimizer: times 1/scale, rounded to FP64 and then to FP32
/// (PyTorch's GradScaler); the overflow test looks at the scaled one.
constexpr float unscaled(float gradient, float inverse_scale) {
  return inverse_scale == 1.0F ? gradient : gradient * inverse_scale;
}
constexpr float inverse_of_scale(float scale) { return static_cast<float>(1.0 / scale); }
constexpr bool is_finite(float x) { return x - x == 0.0F; }

/// The same as any of the loss scalers does it (experiments/scaling/loss_scaler.hpp): times a
/// reciprocal or over the scale.
struct Unscale {
  float scale = 1.0F, inverse = 1.0F;
  bool divides = false;

  constexpr float operator()(float gradient) const {
    return divides ? gradient / scale : unscaled(gradient, inverse);
  }
};

/// A weight of few bits that keeps what rounding took from earlier updates (Kahan's sum): `wanted`
/// is the update plus that rest, `next` what weight + wanted was rounded to. What is left now.
constexpr float compensated_rest(float weight, float wanted, float next) {
  return wanted - (next - weight);
}

/// Stochastic gradient descent as PyTorch has it. A first step begins the momentum with the
/// gradient.
struct SgdStep {
  float learning_rate = 0.01F, momentum = 0.0F, weight_decay = 0.0F;
  bool first = false;

  struct Result {
    float weight, momentum;
  };
  constexpr Result operator()(float weight, float gradient, float velocity) const {
    const Result r = update(weight, gradient, velocity);
    return {weight - r.weight, r.momentum};
  }
  /// What is taken off the weight, in its place.
  constexpr Result update(float weight, float gradient, float velocity) const {
    if (weight_decay != 0.0F) gradient = gradient + weight_decay * weight;
    if (momentum != 0.0F) {
      velocity = first ? gradient : momentum * velocity + gradient;
      gradient = velocity;
    }
    return {learning_rate * gradient, velocity};
  }
};

/// Adam, and AdamW with `decoupled` decay, as PyTorch has them. The corrections 1 - beta^t are
/// computed in FP64 on the host: `step_size` is learning_rate / (1 - beta1^t), `root_correction`
/// sqrt(1 - beta2^t).
struct AdamStep {
  float learning_rate = 0.001F, beta1 = 0.9F, beta2 = 0.999F, epsilon = 1e-8F, weight_decay = 0.0F;
  bool decoupled = false;
  float step_size = 0.001F, root_correction = 1.0F;

  struct Result {
    float weight, first, second;
  };
  constexpr Result operator()(float weight, float gradient, float first, float second) const {
    const Result r = update(weight, gradient, first, second);
    if (weight_decay != 0.0F && decoupled) weight = weight * (1.0F - learning_rate * weight_decay);
    return {weight - r.weight, r.first, r.second};
  }
  /// What is taken off the weight, in its place; decoupled decay is not in it.
  constexpr Result update(float weight, float gradient, float first, float second) const {
    if (weight_decay != 0.0F && !decoupled) gradient = gradient + weight_decay * weight;
    first = first + (gradient - first) * (1.0F - beta1);
    second = second * beta2 + gradient * gradient * (1.0F - beta2);
    const float denominator = square_root(second) / root_correction + epsilon;
    return {step_size * (first / denominator), first, second};
  }
  /// What decoupled decay takes off the weight, where it is taken together with the update.
  constexpr float decay(float weight) const {
    return decoupled ? learning_rate * weight_decay * weight : 0.0F;
  }
};

}  // namespace guardbit::experiments::training
