#pragma once

// The kernels of an instruction set. Included behind `#pragma GCC target`.

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <tuple>
#include <type_traits>
#include <utility>

#include "emulator/functions/kernels/function_kernels.hpp"
#include "emulator/functions/kernels/kernel_programs.hpp"
#include "emulator/functions/kernels/vector_number.hpp"
#include "emulator/functions/kernels/vector_unit.hpp"

namespace guardbit::emulator::kernels {

template <class Isa, class Program>
[[gnu::always_inline]] inline void compute_vector(const std::uint32_t* x, const std::uint32_t* y,
                                                  std::uint32_t* results) {
  using Number = VectorNumber<Isa>;
  using Words = typename Isa::Words;
  const Number first = Number::of(formats::vectors::load<Words>(x));
  Number result;
  if constexpr (std::is_invocable_v<Program, Number>) {
    result = Program()(first);
  } else {
    result = Program()(first, Number::of(formats::vectors::load<Words>(y)));
  }
  if constexpr (!requires { Program::has_one_nan; })
    result = select(result == result, result, Number::of(mufu::nan_code));
  formats::vectors::store(results, bits(result).words);
}

template <class Isa>
inline constexpr std::size_t lanes_of = sizeof(typename Isa::Words) / sizeof(std::uint32_t);

/// Whole vectors.
template <class Isa, class Program>
[[gnu::flatten, gnu::noinline]] void run_vectors(const std::uint32_t* x, const std::uint32_t* y,
                                                 std::uint32_t* results, std::size_t vectors) {
  constexpr bool is_of_one = std::is_invocable_v<Program, VectorNumber<Isa>>;
  for (std::size_t i = 0; i < vectors; ++i) {
    const std::size_t at = i * lanes_of<Isa>;
    compute_vector<Isa, Program>(x + at, is_of_one ? nullptr : y + at, results + at);
  }
}

/// What is left at the end is computed in a vector that is filled up with zeros.
template <class Isa, class Program>
void run_kernel(const std::uint32_t* x, const std::uint32_t* y, std::uint32_t* results,
                std::size_t count) {
  constexpr std::size_t lanes = lanes_of<Isa>;
  const std::size_t rest = count % lanes, at = count - rest;
  run_vectors<Isa, Program>(x, y, results, count / lanes);
  if (rest == 0) return;
  std::uint32_t last_x[lanes] = {}, last_y[lanes] = {}, last_results[lanes];
  std::memcpy(last_x, x + at, rest * sizeof *x);
  if (y != nullptr) std::memcpy(last_y, y + at, rest * sizeof *y);
  run_vectors<Isa, Program>(last_x, last_y, last_results, 1);
  std::memcpy(results + at, last_results, rest * sizeof *results);
}

template <class Isa, class... Programs>
constexpr auto kernels_of(const std::tuple<NamedProgram<Programs>...>& programs) {
  return std::apply(
      [](const auto&... each) {
        return std::array{FunctionKernel{
            each.name, run_kernel<Isa, std::remove_cvref_t<decltype(each.program)>>}...};
      },
      programs);
}

/// All of them.
template <class Isa>
constexpr auto all_kernels_of() {
  return kernels_of<Isa>(std::tuple_cat(instruction_kernels, cuda_kernels));
}

}  // namespace guardbit::emulator::kernels
