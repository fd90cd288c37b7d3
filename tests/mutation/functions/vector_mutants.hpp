#pragma once

// The mutants' kernels of an instruction set. Included behind `#pragma GCC target`.

#include <array>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <type_traits>
#include <utility>

#include "emulator/functions/kernels/single_lanes.hpp"
#include "emulator/functions/kernels/vector_unit.hpp"
#include "tests/mutation/functions/mutant_kernels.hpp"
#define GUARDBIT_MUTANT_STEP [[gnu::always_inline]]
#define GUARDBIT_MUTANT_LAMBDA __attribute__((always_inline))
#include "tests/mutation/functions/mutant_number.hpp"
#include "tests/mutation/functions/surveyed_programs.hpp"

namespace guardbit::tests {

using emulator::kernels::VectorNumber;
namespace vectors = formats::vectors;

template <class Isa>
inline constexpr std::size_t lanes_of = sizeof(typename Isa::Words) / sizeof(std::uint32_t);

template <class Isa>
struct LargeAngles<VectorNumber<Isa>> {
  using Vector = VectorNumber<Isa>;
  using Mask = typename Vector::Mask;
  using Word = typename Vector::Word;

  static void reduce(Vector x, Mask which, Word& quarter, Vector& r) {
    if (any(which)) [[unlikely]]
      reduce_some(x, which, quarter, r);
  }
  [[gnu::noinline]] static void reduce_some(Vector x, Mask which, Word& quarter, Vector& r) {
    using Words = typename Isa::Words;
    std::uint32_t codes[lanes_of<Isa>], quarters[lanes_of<Isa>], rests[lanes_of<Isa>];
    vectors::store(codes, bits(x).words);
    vectors::store(quarters, quarter.words);
    vectors::store(rests, bits(r).words);
    emulator::kernels::reduce_large_angles(codes, Isa::bits_of(which.lanes), quarters, rests);
    quarter = vectors::load<Words>(quarters);
    r = Vector::of(vectors::load<Words>(rests));
  }
};

template <class Isa, class Result>
[[gnu::always_inline]] inline void store_result(Result x, std::uint32_t* to) {
  using Vector = VectorNumber<Isa>;
  if constexpr (std::is_same_v<Result, MutantNumber<Vector>>) {
    const Vector v = x.number();
    const Vector one_nan = select(v == v, v, Vector::of(emulator::mufu::nan_code));
    vectors::store(to, bits(one_nan).words);
  } else {
    vectors::store(to, x.word.words);
  }
}

template <class Isa, class Program>
[[gnu::flatten, gnu::noinline]] void run_mutant(const std::array<const std::uint32_t*, 4>& operands,
                                                const std::array<std::uint32_t*, 2>& results,
                                                std::size_t count) {
  using Vector = VectorNumber<Isa>;
  using Number = MutantNumber<Vector>;
  for (std::size_t at = 0; at < count; at += lanes_of<Isa>) {
    program_branch = 0;
    const auto result = [&]<std::size_t... i>(std::index_sequence<i...>) {
      return Program()(
          Number::operand(Vector::of(vectors::load<typename Isa::Words>(operands[i] + at)), i)...);
    }
    (std::make_index_sequence<operands_of<Number, Program>()>());
    if constexpr (requires { result.second; }) {
      store_result<Isa>(result.first, results[0] + at);
      store_result<Isa>(result.second, results[1] + at);
    } else {
      store_result<Isa>(result, results[0] + at);
    }
  }
}

template <class Isa, class... Programs>
constexpr auto kernels_of(const std::tuple<NamedProgram<Programs>...>& programs) {
  return std::apply(
      [](const auto&... each) {
        return std::array{MutantKernel{
            each.name, run_mutant<Isa, std::remove_cvref_t<decltype(each.program)>>}...};
      },
      programs);
}
/// All of them.
template <class Isa>
constexpr auto all_kernels_of() {
  return kernels_of<Isa>(std::tuple_cat(emulator::kernels::cuda_kernels, more_programs));
}

}  // namespace guardbit::tests
