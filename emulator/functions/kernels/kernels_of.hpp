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
  result = select(result == result, result, Number::of(mufu::nan_code));
  formats::vectors::store(results, bits(result).words);
}

/// Whole vectors, and what is left at the end in one that is filled up with zeros.
template <class Isa, class Program>
[[gnu::flatten]] void run_kernel(const std::uint32_t* x, const std::uint32_t* y,
                                 std::uint32_t* results, std::size_t count) {
  constexpr std::size_t lanes = sizeof(typename Isa::Words) / sizeof(std::uint32_t);
  constexpr bool is_of_one = std::is_invocable_v<Program, VectorNumber<Isa>>;
  std::uint32_t last_x[lanes] = {}, last_y[lanes] = {}, last_results[lanes];
  for (std::size_t i = 0; i < count; i += lanes) {
    const std::size_t part = count - i;
    if (part >= lanes) {
      compute_vector<Isa, Program>(x + i, is_of_one ? nullptr : y + i, results + i);
      continue;
    }
    std::memcpy(last_x, x + i, part * sizeof *x);
    if (!is_of_one) std::memcpy(last_y, y + i, part * sizeof *y);
    compute_vector<Isa, Program>(last_x, last_y, last_results);
    std::memcpy(results + i, last_results, part * sizeof *results);
  }
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
