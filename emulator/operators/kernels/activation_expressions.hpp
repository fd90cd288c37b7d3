#pragma once

#include "emulator/functions/cuda/cuda_error_functions.hpp"
#include "emulator/functions/cuda/cuda_exponentials.hpp"
#include "emulator/functions/cuda/cuda_hyperbolics.hpp"
#include "emulator/functions/cuda/cuda_logarithms.hpp"
#include "emulator/operators/kernels/parameters.hpp"

// What activations and their gradients compute, of one number (HostNumber) or a vector of them. The
// kernels of an instruction set compile the same text.
namespace guardbit::emulator::operators::expressions {

using P = const Parameters&;

inline constexpr float root_of_half = 0x1.6a09e6p-1F;

/// What the unit computed: its NaN has all bits set.
template <class Number>
Number computed_number(Number x) {
  return select(x == x, x, Number::of(0x7fffffff));
}
template <class Number>
Number logistic(Number x) {
  return 1 / (1 + cuda_math::expf(-x));
}
template <class Number>
Number soft_rectified(Number x) {
  return cuda_math::log1pf(cuda_math::expf(x));
}
template <class Number>
Number inner_of_gelu_tanh(Number x) {
  return 0x1.988454p-1F * fma(x * (x * x), 0x1.6e4e26p-5F, x);
}

inline constexpr auto sigmoid = [](auto x, P) { return logistic(x); };
inline constexpr auto silu = [](auto x, P) { return x / (1 + cuda_math::expf(-x)); };
inline constexpr auto gelu = [](auto x, P) {
  return (x * 0.5F) * (1 + cuda_math::erff(x * root_of_half));
};
inline constexpr auto gelu_tanh = [](auto x, P) {
  return (0.5F * x) * (1 + cuda_math::tanhf(inner_of_gelu_tanh(x)));
};
inline constexpr auto softplus = [](auto x, P p) {
  const auto scaled = x * p.numbers[0];
  return select(scaled > p.numbers[1], x, soft_rectified(scaled) / p.numbers[0]);
};
inline constexpr auto mish = [](auto x, P) { return x * cuda_math::tanhf(soft_rectified(x)); };
inline constexpr auto elu = [](auto x, P p) {
  return select(x > 0, x * p.numbers[1], cuda_math::expm1f(x * p.numbers[2]) * p.numbers[0]);
};
inline constexpr auto log_sigmoid = [](auto x, P) {
  return select(x >= 0, decltype(x)(0), x) - soft_rectified(-abs(x));
};

inline constexpr auto gelu_backward = [](auto dy, auto x, P) {
  const auto twice = 1 + cuda_math::erff(x * root_of_half);
  const auto density = cuda_math::expf((-0.5F * x) * x) * 0x1.988454p-2F;
  return dy * fma(twice, 0.5F, x * density);
};
inline constexpr auto gelu_backward_tanh = [](auto dy, auto x, P) {
  const auto t = cuda_math::tanhf(inner_of_gelu_tanh(x));
  const auto of_tanh = fma(-t, t, 1);
  const auto of_inner = fma(x * x, 0x1.12ba9cp-3F, 1) * 0x1.988454p-1F;
  const auto right = ((0.5F * x) * of_tanh) * of_inner;
  return dy * fma(1 + t, 0.5F, right);
};
inline constexpr auto silu_backward = [](auto dy, auto x, P) {
  const auto s = logistic(x);
  return (dy * s) * fma(x, 1 - s, 1);
};
inline constexpr auto mish_backward = [](auto dy, auto x, P) {
  const auto s = logistic(x), t = cuda_math::tanhf(soft_rectified(x));
  return dy * fma(x * s, fma(-t, t, 1), t);
};
inline constexpr auto softplus_backward = [](auto dy, auto x, P p) {
  const auto scaled = x * p.numbers[0], z = cuda_math::expf(scaled);
  return select(scaled > p.numbers[1], dy, computed_number((dy * z) / (z + 1)));
};
inline constexpr auto elu_backward = [](auto dy, auto x, P p) {
  return select(x <= 0, ((dy * p.numbers[2]) * p.numbers[0]) * cuda_math::expf(x * p.numbers[2]),
                dy * p.numbers[1]);
};
inline constexpr auto log_sigmoid_backward = [](auto dy, auto x, P) {
  const auto z = cuda_math::expf(-abs(x));
  const auto share = z / (1 + z);
  return dy * select(x < 0, 1 - share, 0 + share);
};

}  // namespace guardbit::emulator::operators::expressions
