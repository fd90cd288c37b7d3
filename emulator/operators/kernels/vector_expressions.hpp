#pragma once

// Expressions of operators as kernels of an instruction set. Included behind `#pragma GCC target`.

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <tuple>
#include <type_traits>

#include "emulator/functions/kernels/vector_kernels.hpp"
#include "emulator/operators/kernels/activation_expressions.hpp"
#include "emulator/operators/kernels/operator_kernels.hpp"

namespace guardbit::emulator::operators::kernels {

using emulator::kernels::NamedProgram;
using emulator::kernels::VectorNumber;

template <class Isa, class Expression>
[[gnu::always_inline]] inline void compute_vector(const float* x, const float* y,
                                                  const Parameters& parameters, float* results) {
  using Floats = typename Isa::Floats;
  using Number = VectorNumber<Isa>;
  const Number first = Number::of_floats(formats::vectors::load<Floats>(x));
  Number result;
  if constexpr (std::is_invocable_v<Expression, Number, const Parameters&>) {
    result = Expression()(first, parameters);
  } else {
    result = Expression()(first, Number::of_floats(formats::vectors::load<Floats>(y)), parameters);
  }
  formats::vectors::store(results, result.floats());
}

/// Whole vectors.
template <class Isa, class Expression>
[[gnu::flatten, gnu::noinline]] void run_vectors(const float* x, const float* y,
                                                 const Parameters& parameters, float* results,
                                                 std::size_t vectors) {
  constexpr std::size_t lanes = emulator::kernels::lanes_of<Isa>;
  const Parameters own = parameters;
  for (std::size_t i = 0; i < vectors; ++i) {
    const std::size_t at = i * lanes;
    compute_vector<Isa, Expression>(x + at, y == nullptr ? x : y + at, own, results + at);
  }
}

/// What is left at the end is computed in a vector that is filled up with zeros.
template <class Isa, class Expression>
void run_kernel(const float* x, const float* y, const Parameters& parameters, float* results,
                std::size_t count) {
  constexpr std::size_t lanes = emulator::kernels::lanes_of<Isa>;
  const std::size_t rest = count % lanes, at = count - rest;
  run_vectors<Isa, Expression>(x, y, parameters, results, count / lanes);
  if (rest == 0) return;
  float last_x[lanes] = {}, last_y[lanes] = {}, last_results[lanes];
  std::memcpy(last_x, x + at, rest * sizeof *x);
  if (y != nullptr) std::memcpy(last_y, y + at, rest * sizeof *y);
  run_vectors<Isa, Expression>(last_x, last_y, parameters, last_results, 1);
  std::memcpy(results + at, last_results, rest * sizeof *results);
}

inline constexpr std::tuple pointwise_kernels = {
    NamedProgram{"sqrt", [](auto x, const Parameters&) { return square_root(x); }},
    NamedProgram{"sigmoid", expressions::sigmoid},
    NamedProgram{"silu", expressions::silu},
    NamedProgram{"gelu", expressions::gelu},
    NamedProgram{"gelu_tanh", expressions::gelu_tanh},
    NamedProgram{"softplus", expressions::softplus},
    NamedProgram{"mish", expressions::mish},
    NamedProgram{"elu", expressions::elu},
    NamedProgram{"log_sigmoid", expressions::log_sigmoid},
    NamedProgram{"gelu_backward", expressions::gelu_backward},
    NamedProgram{"gelu_backward_tanh", expressions::gelu_backward_tanh},
    NamedProgram{"silu_backward", expressions::silu_backward},
    NamedProgram{"mish_backward", expressions::mish_backward},
    NamedProgram{"softplus_backward", expressions::softplus_backward},
    NamedProgram{"elu_backward", expressions::elu_backward},
    NamedProgram{"log_sigmoid_backward", expressions::log_sigmoid_backward}};

/// All of them.
template <class Isa>
constexpr auto pointwise_kernels_of() {
  return std::apply(
      [](const auto&... each) {
        return std::array{PointwiseKernel{
            each.name, run_kernel<Isa, std::remove_cvref_t<decltype(each.program)>>}...};
      },
      pointwise_kernels);
}

}  // namespace guardbit::emulator::operators::kernels
