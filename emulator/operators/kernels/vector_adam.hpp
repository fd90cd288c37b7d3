#pragma once

// Adam as a kernel of an instruction set. Included behind `#pragma GCC target`.

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "emulator/functions/kernels/vector_kernels.hpp"
#include "emulator/operators/kernels/adam_kernel.hpp"

namespace guardbit::emulator::operators::kernels {

template <class Isa, bool has_decay>
[[gnu::flatten, gnu::noinline]] void adam_vectors(const AdamVectors& of, std::size_t vectors) {
  using Number = emulator::kernels::VectorNumber<Isa>;
  using Floats = typename Isa::Floats;
  const auto at = [](const float* numbers) __attribute__((always_inline)) {
    return Number::of_floats(formats::vectors::load<Floats>(numbers));
  };
  const auto put = [](float* numbers, Number x) __attribute__((always_inline)) {
    formats::vectors::store(numbers, select(x == x, x, Number::of(0x7fffffff)).floats());
  };
  const Number beta1 = of.beta1, beta2 = of.beta2, step_size = of.step_size, eps = of.eps;
  const Number correction = of.root_of_correction, decay = of.decay;
  for (std::size_t v = 0; v < vectors; ++v) {
    const std::size_t i = v * emulator::kernels::lanes_of<Isa>;
    const Number g = at(of.gradient + i), square = g * g;
    Number p = at(of.parameter + i);
    if constexpr (has_decay) p = fma(-decay, p, p);
    const Number first = fma(beta1, at(of.first + i), fma(-beta1, g, g));
    const Number second = fma(beta2, at(of.second + i), fma(-beta2, square, square));
    put(of.new_parameter + i, p - (step_size * first) / (square_root(second) / correction + eps));
    put(of.new_first + i, first);
    put(of.new_second + i, second);
  }
}

template <class Isa>
void run_adam(const AdamVectors& of, std::size_t count) {
  constexpr std::size_t lanes = emulator::kernels::lanes_of<Isa>;
  const auto run = [](const AdamVectors& x, std::size_t vectors) {
    x.decay != 0 ? adam_vectors<Isa, true>(x, vectors) : adam_vectors<Isa, false>(x, vectors);
  };
  run(of, count / lanes);
  const std::size_t rest = count % lanes, at = count - rest;
  if (rest == 0) return;
  float p[lanes] = {}, g[lanes] = {}, first[lanes] = {}, second[lanes] = {};
  const std::size_t size = rest * sizeof(float);
  std::memcpy(p, of.parameter + at, size);
  std::memcpy(g, of.gradient + at, size);
  std::memcpy(first, of.first + at, size);
  std::memcpy(second, of.second + at, size);
  AdamVectors last = of;
  last.parameter = last.new_parameter = p;
  last.gradient = g;
  last.first = last.new_first = first;
  last.second = last.new_second = second;
  run(last, 1);
  std::memcpy(of.new_parameter + at, p, size);
  std::memcpy(of.new_first + at, first, size);
  std::memcpy(of.new_second + at, second, size);
}

}  // namespace guardbit::emulator::operators::kernels
