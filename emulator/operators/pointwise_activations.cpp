#include <limits>

#include "emulator/functions/cuda/cuda_error_functions.hpp"
#include "emulator/functions/cuda/cuda_exponentials.hpp"
#include "emulator/functions/cuda/cuda_hyperbolics.hpp"
#include "emulator/functions/cuda/cuda_logarithms.hpp"
#include "emulator/operators/pointwise_program.hpp"

// Activations and their gradients.
namespace guardbit::emulator::operators {
namespace {

using Number = HostNumber;
using P = const Parameters&;

constexpr float root_of_half = 0x1.6a09e6p-1F, sixth = 0x1.555556p-3F;

bool is_nan(Number x) { return x.number() != x.number(); }
Number stored(P p, Number x) { return rounded_to(p.type, x.number()); }
Number logistic(Number x) { return 1 / (1 + cuda_math::expf(-x)); }
Number soft_rectified(Number x) { return cuda_math::log1pf(cuda_math::expf(x)); }

/// x + 3, kept in 0 to 6.
Number hard_gate(Number x) {
  const Number y = x + 3;
  return select(y > 6, 6, select(y < 0, 0, y));
}

Number inner_of_gelu_tanh(Number x) { return 0x1.988454p-1F * fma(x * (x * x), 0x1.6e4e26p-5F, x); }

Number gelu_gradient(Number dy, Number x) {
  const Number twice = 1 + cuda_math::erff(x * root_of_half);
  const Number density = cuda_math::expf((-0.5F * x) * x) * 0x1.988454p-2F;
  return dy * fma(twice, 0.5F, x * density);
}

Number gelu_tanh_gradient(Number dy, Number x) {
  const Number t = cuda_math::tanhf(inner_of_gelu_tanh(x));
  const Number of_tanh = fma(-t, t, 1);
  const Number of_inner = fma(x * x, 0x1.12ba9cp-3F, 1) * 0x1.988454p-1F;
  const Number right = ((0.5F * x) * of_tanh) * of_inner;
  return dy * fma(1 + t, 0.5F, right);
}

Number silu_gradient(Number dy, Number x) {
  const Number s = logistic(x);
  return (dy * s) * fma(x, 1 - s, 1);
}

Number mish_gradient(Number dy, Number x) {
  const Number s = logistic(x), t = cuda_math::tanhf(soft_rectified(x));
  return dy * fma(x * s, fma(-t, t, 1), t);
}

Number log_sigmoid_gradient(Number dy, Number x) {
  const Number z = cuda_math::expf(-abs(x));
  const Number share = z / (1 + z);
  return dy * (x < 0 ? 1 - share : 0 + share);
}

const std::array activations = {
    pointwise("sigmoid", "1 / (1 + expf(-x))", [](Number x, P) { return logistic(x); }),
    pointwise("silu", "x / (1 + expf(-x))",
              [](Number x, P) { return x / (1 + cuda_math::expf(-x)); }),
    pointwise("gelu", "(x 0.5) (1 + erff(x sqrt(0.5)))",
              [](Number x, P) { return (x * 0.5F) * (1 + cuda_math::erff(x * root_of_half)); }),
    pointwise(
        "gelu_tanh", "(0.5 x) (1 + tanhf(sqrt(2 / pi) fma(x (x x), 0.044715, x)))",
        [](Number x, P) { return (0.5F * x) * (1 + cuda_math::tanhf(inner_of_gelu_tanh(x))); }),
    pointwise("softplus", "x p > q: x, else log1pf(expf(x p)) / p",
              [](Number x, P p) {
                const Number scaled = x * p.numbers[0];
                return scaled > p.numbers[1] ? x : soft_rectified(scaled) / p.numbers[0];
              }),
    pointwise("mish", "x tanhf(log1pf(expf(x)))",
              [](Number x, P) { return x * cuda_math::tanhf(soft_rectified(x)); }),
    pointwise("elu", "x > 0: x q, else expm1f(x r) p",
              [](Number x, P p) {
                return x > 0 ? x * p.numbers[1]
                             : cuda_math::expm1f(x * p.numbers[2]) * p.numbers[0];
              }),
    pointwise("hardswish", "(x min(max(x + 3, 0), 6)) (1 / 6)",
              [](Number x, P) { return (x * hard_gate(x)) * sixth; }),
    pointwise("hardsigmoid", "min(max(x + 3, 0), 6) (1 / 6)",
              [](Number x, P) { return hard_gate(x) * sixth; }),
    pointwise(
        "log_sigmoid", "min(0, x) - log1pf(expf(-|x|))",
        [](Number x, P) { return (is_nan(x) || x < 0 ? x : Number(0)) - soft_rectified(-abs(x)); }),
    pointwise("leaky_relu", "x > 0: x, else x p",
              [](Number x, P p) { return x > 0 ? x : x * p.numbers[0]; }),
    choosing("relu", "the greater of x and 0; a NaN stays",
             [](Number x, P) { return is_nan(x) || x > 0 ? x : Number(0); }),
    choosing("threshold", "x <= p: q, else x",
             [](Number x, P p) { return x <= p.numbers[0] ? Number(p.numbers[1]) : x; }),
    choosing("hardshrink", "-p <= x <= p: 0, else x",
             [](Number x, P p) { return x >= -p.numbers[0] && x <= p.numbers[0] ? Number(0) : x; }),
    choosing("softshrink", "x > p: x - p; x < -p: x + p; else 0",
             [](Number x, P p) -> Number {
               if (is_nan(x)) return x;
               if (x > p.numbers[0]) return computed_number(x - p.numbers[0]);
               return x < -p.numbers[0] ? x + p.numbers[0] : Number(0);
             }),
};

const std::array gradients = {
    pointwise("sigmoid_backward", "(x (1 - y)) y, each step stored in the result's type",
              [](Number dy, Number y, P p) { return stored(p, dy * stored(p, 1 - y)) * y; }),
    pointwise("tanh_backward",
              "x fma(-y, y, 1) in FP32; else x (1 - y y), each step stored in the result's type",
              [](Number dy, Number y, P p) {
                if (p.type == formats::fp32) return dy * fma(-y, y, 1);
                return dy * stored(p, 1 - stored(p, y * y));
              }),
    pointwise("gelu_backward", "x fma(1 + erff(y sqrt(0.5)), 0.5, y expf((-0.5 y) y) / sqrt(2 pi))",
              [](Number dy, Number x, P) { return gelu_gradient(dy, x); }),
    pointwise(
        "gelu_backward_tanh",
        "t = tanhf(...); x fma(1 + t, 0.5, ((0.5 y) fma(-t, t, 1)) (fma(y y, 0.134145, 1) sqrt(2 / pi)))",
        [](Number dy, Number x, P) { return gelu_tanh_gradient(dy, x); }),
    pointwise("silu_backward", "s = 1 / (1 + expf(-y)); (x s) fma(y, 1 - s, 1)",
              [](Number dy, Number x, P) { return silu_gradient(dy, x); }),
    pointwise("mish_backward",
              "s = 1 / (1 + expf(-y)), t = tanhf(log1pf(expf(y))); x fma(y s, fma(-t, t, 1), t)",
              [](Number dy, Number x, P) { return mish_gradient(dy, x); }),
    choosing_in_fp32("softplus_backward", "z = expf(y p); y p > q: x, else (x z) / (z + 1)",
                     [](Number dy, Number x, P p) {
                       const Number scaled = x * p.numbers[0], z = cuda_math::expf(scaled);
                       return scaled > p.numbers[1] ? dy : computed_number((dy * z) / (z + 1));
                     }),
    choosing("threshold_backward", "y <= p: 0, else x",
             [](Number dy, Number x, P p) { return x <= p.numbers[0] ? Number(0) : dy; }),
    choosing_in_fp32(
        "leaky_relu_backward", "y > 0: x, else x p",
        [](Number dy, Number x, P p) { return x > 0 ? dy : computed_number(dy * p.numbers[0]); }),
    choosing_in_fp32("hardtanh_backward", "y <= p or y >= q: 0, else x",
                     [](Number dy, Number x, P p) {
                       return x <= p.numbers[0] || x >= p.numbers[1] ? Number(0) : dy;
                     }),
    choosing_in_fp32("hardswish_backward", "y <= -3: 0; y < 3: x (y / 3 + 0.5); else x",
                     [](Number dy, Number x, P) -> Number {
                       if (x <= -3) return 0;
                       return x < 3 ? computed_number(dy * (x / 3 + 0.5F)) : dy;
                     }),
    pointwise("hardsigmoid_backward", "-3 < y < 3: x (1 / 6), else 0",
              [](Number dy, Number x, P) { return x > -3 && x < 3 ? dy * sixth : Number(0); }),
    pointwise("elu_backward", "y <= 0: ((x r) p) expf(y r), else x q",
              [](Number dy, Number x, P p) {
                return x <= 0 ? ((dy * p.numbers[2]) * p.numbers[0]) *
                                    cuda_math::expf(x * p.numbers[2])
                              : dy * p.numbers[1];
              }),
    pointwise("elu_backward_result", "y <= 0: (x r) (y + p), else x q",
              [](Number dy, Number y, P p) {
                return y <= 0 ? (dy * p.numbers[2]) * (y + p.numbers[0]) : dy * p.numbers[1];
              }),
    pointwise("log_sigmoid_backward",
              "z = expf(-|y|); x (1 - z / (1 + z)) below 0, else x (z / (1 + z))",
              [](Number dy, Number x, P) { return log_sigmoid_gradient(dy, x); }),
    choosing("hardshrink_backward", "-p <= y <= p: 0, else x",
             [](Number dy, Number x, P p) {
               return x >= -p.numbers[0] && x <= p.numbers[0] ? Number(0) : dy;
             }),
};

}  // namespace

std::span<const PointwiseOperator> activation_operators() { return activations; }
std::span<const PointwiseOperator> gradient_operators() { return gradients; }

}  // namespace guardbit::emulator::operators
