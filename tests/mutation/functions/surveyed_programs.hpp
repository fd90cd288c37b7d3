#pragma once

// The programs that are surveyed beside those that are kernels, by their names in the catalogue.
// Those in `more_programs` can be vectors, too.

#include <cstdint>
#include <tuple>
#include <utility>

#include "emulator/functions/cuda/cuda_bessel_orders.hpp"
#include "emulator/functions/cuda/cuda_parts.hpp"
#include "emulator/functions/cuda/cuda_powers.hpp"
#include "emulator/functions/cuda/cuda_remainders.hpp"
#include "emulator/functions/cuda/cuda_trigonometry.hpp"
#include "emulator/functions/kernels/kernel_programs.hpp"

namespace guardbit::tests {

namespace cuda_math = emulator::cuda_math;
using emulator::kernels::NamedProgram;

inline constexpr std::tuple more_programs = {
    NamedProgram{"sincosf",
                 [](auto x) { return std::pair(cuda_math::sinf(x), cuda_math::cosf(x)); }},
    NamedProgram{"sincospif",
                 [](auto x) { return std::pair(cuda_math::sinpif(x), cuda_math::cospif(x)); }},
    NamedProgram{"modff", [](auto x) { return cuda_math::modff(x); }},
    NamedProgram{"ilogbf", [](auto x) { return cuda_math::ilogbf(x); }},
    NamedProgram{"frexpf", [](auto x) { return cuda_math::frexpf(x); }},
    NamedProgram{"ldexpf", [](auto x, auto n) { return cuda_math::ldexpf(x, bits(n)); }},
    NamedProgram{"scalbnf", [](auto x, auto n) { return cuda_math::ldexpf(x, bits(n)); }},
    NamedProgram{"norm3df", [](auto x, auto y, auto z) { return cuda_math::norm3df(x, y, z); }},
    NamedProgram{"rnorm3df", [](auto x, auto y, auto z) { return cuda_math::rnorm3df(x, y, z); }},
    NamedProgram{"norm4df",
                 [](auto x, auto y, auto z, auto w) { return cuda_math::norm4df(x, y, z, w); }},
    NamedProgram{"rnorm4df",
                 [](auto x, auto y, auto z, auto w) { return cuda_math::rnorm4df(x, y, z, w); }}};

/// Those whose steps depend on each operand alone.
inline constexpr std::tuple single_programs = {
    NamedProgram{"remquof", [](auto x, auto y) { return cuda_math::remquof(x, y); }},
    NamedProgram{
        "jnf",
        [](auto n, auto x) { return cuda_math::jnf(static_cast<std::uint32_t>(bits(n)), x); }},
    NamedProgram{"ynf", [](auto n, auto x) {
                   return cuda_math::ynf(static_cast<std::uint32_t>(bits(n)), x);
                 }}};

/// How many numbers a program takes.
template <class Number, class Program>
constexpr std::size_t operands_of() {
  if (std::is_invocable_v<Program, Number>) return 1;
  if (std::is_invocable_v<Program, Number, Number>) return 2;
  if (std::is_invocable_v<Program, Number, Number, Number>) return 3;
  return 4;
}

}  // namespace guardbit::tests
