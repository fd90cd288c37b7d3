#include "emulator/operators/kernels/activation_expressions.hpp"
#include "emulator/operators/pointwise/pointwise_program.hpp"

// Activations and their gradients.
namespace guardbit::emulator::operators {
namespace {

using Number = HostNumber;
using P = const Parameters&;

constexpr float sixth = 0x1.555556p-3F;

bool is_nan(Number x) { return x.number() != x.number(); }
Number stored(P p, Number x) { return rounded_to(p.type, x.number()); }

/// x + 3, kept in 0 to 6.
Number hard_gate(Number x) {
  const Number y = x + 3;
  return select(y > 6, 6, select(y < 0, 0, y));
}

const std::array activations = {
    pointwise("sigmoid", "1 / (1 + expf(-x))", expressions::sigmoid),
    pointwise("silu", "x / (1 + expf(-x))", expressions::silu),
    pointwise("gelu", "(x 0.5) (1 + erff(x sqrt(0.5)))", expressions::gelu),
    pointwise("gelu_tanh", "(0.5 x) (1 + tanhf(sqrt(2 / pi) fma(x (x x), 0.044715, x)))",
              expressions::gelu_tanh),
    pointwise("softplus", "x p > q: x, else log1pf(expf(x p)) / p", expressions::softplus),
    pointwise("mish", "x tanhf(log1pf(expf(x)))", expressions::mish),
    pointwise("elu", "x > 0: x q, else expm1f(x r) p", expressions::elu),
    pointwise("hardswish", "(x min(max(x + 3, 0), 6)) (1 / 6)",
              [](Number x, P) { return (x * hard_gate(x)) * sixth; }),
    pointwise("hardsigmoid", "min(max(x + 3, 0), 6) (1 / 6)",
              [](Number x, P) { return hard_gate(x) * sixth; }),
    pointwise("log_sigmoid", "min(0, x) - log1pf(expf(-|x|))", expressions::log_sigmoid),
    pointwise("leaky_relu", "x > 0: x, else x p",
              [](Number x, P p) { return x > 0 ? x : x * p.numbers[0]; }),
    pointwise("glu", "x (1 / (1 + expf(-y)))",
              [](Number x, Number y, P) { return x * expressions::logistic(y); }),
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
              expressions::gelu_backward),
    pointwise(
        "gelu_backward_tanh",
        "t = tanhf(...); x fma(1 + t, 0.5, ((0.5 y) fma(-t, t, 1)) (fma(y y, 0.134145, 1) sqrt(2 / pi)))",
        expressions::gelu_backward_tanh),
    pointwise("silu_backward", "s = 1 / (1 + expf(-y)); (x s) fma(y, 1 - s, 1)",
              expressions::silu_backward),
    pointwise("mish_backward",
              "s = 1 / (1 + expf(-y)), t = tanhf(log1pf(expf(y))); x fma(y s, fma(-t, t, 1), t)",
              expressions::mish_backward),
    choosing_in_fp32("softplus_backward", "z = expf(y p); y p > q: x, else (x z) / (z + 1)",
                     expressions::softplus_backward),
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
    pointwise("elu_backward", "y <= 0: ((x r) p) expf(y r), else x q", expressions::elu_backward),
    pointwise("elu_backward_result", "y <= 0: (x r) (y + p), else x q",
              [](Number dy, Number y, P p) {
                return y <= 0 ? (dy * p.numbers[2]) * (y + p.numbers[0]) : dy * p.numbers[1];
              }),
    pointwise("log_sigmoid_backward",
              "z = expf(-|y|); x (1 - z / (1 + z)) below 0, else x (z / (1 + z))",
              expressions::log_sigmoid_backward),
    pointwise("glu_backward", "(1 / (1 + expf(-y))) x",
              [](Number dy, Number gate, P) { return expressions::logistic(gate) * dy; }),
    pointwise("glu_backward_gate", "s = 1 / (1 + expf(-z)); (((1 - s) s) x) y",
              [](Number dy, Number x, Number gate, P) {
                const Number s = expressions::logistic(gate);
                return (((1 - s) * s) * dy) * x;
              }),
    choosing_in_fp32("logit_backward", "x / (y (1 - y)) where y is in p to q, else r",
                     [](Number dy, Number x, P p) {
                       return x < p.numbers[0] || x > p.numbers[1]
                                  ? Number(p.numbers[2])
                                  : computed_number(dy / (x * (1 - x)));
                     }),
    choosing("hardshrink_backward", "-p <= y <= p: 0, else x",
             [](Number dy, Number x, P p) {
               return x >= -p.numbers[0] && x <= p.numbers[0] ? Number(0) : dy;
             }),
};

}  // namespace

std::span<const PointwiseOperator> activation_operators() { return activations; }
std::span<const PointwiseOperator> gradient_operators() { return gradients; }

}  // namespace guardbit::emulator::operators
