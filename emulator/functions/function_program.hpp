#pragma once

#include <type_traits>

#include "emulator/engine/cpu.hpp"
#include "emulator/functions/function.hpp"
#include "emulator/functions/function_digest.hpp"
#include "emulator/functions/numbers/host_number.hpp"
#include "emulator/functions/numbers/reference_number.hpp"

// A program of numbers as a function of codes. A Program is an object without state that takes one
// number or two, of any type.
namespace guardbit::emulator {

template <class Program>
inline constexpr bool is_of_one = std::is_invocable_v<Program, HostNumber>;

template <class Number, class Program>
constexpr std::uint32_t result_of(Program program, std::uint32_t x, std::uint32_t y) {
  if constexpr (is_of_one<Program>) {
    return with_one_nan(bits(program(Number::of(x))));
  } else {
    return with_one_nan(bits(program(Number::of(x), Number::of(y))));
  }
}

template <class Program>
void run_on_host(FunctionCodes x, FunctionCodes y, std::span<std::uint32_t> results) {
  for (std::size_t i = 0; i < results.size(); ++i)
    results[i] = result_of<HostNumber>(Program(), x[i], is_of_one<Program> ? 0 : y[i]);
}

#if defined(__x86_64__)
// Fused steps are the CPU's own instruction here, not a call.
template <class Program>
[[gnu::target("avx2,fma"), gnu::flatten]] void run_on_x86(FunctionCodes x, FunctionCodes y,
                                                          std::span<std::uint32_t> results) {
  for (std::size_t i = 0; i < results.size(); ++i)
    results[i] = result_of<HostNumber>(Program(), x[i], is_of_one<Program> ? 0 : y[i]);
}
template <class Program>
void run_program(FunctionCodes x, FunctionCodes y, std::span<std::uint32_t> results) {
  static const auto run = cpu::features().avx2_kernels ? run_on_x86<Program> : run_on_host<Program>;
  run(x, y, results);
}
#else
template <class Program>
void run_program(FunctionCodes x, FunctionCodes y, std::span<std::uint32_t> results) {
  run_on_host<Program>(x, y, results);
}
#endif

inline constexpr Evidence all_results = {Basis::measured,
                                         "H100, CUDA 13.0: digest of all 2^32 results"};
inline constexpr Evidence drawn_results = {
    Basis::measured, "H100, CUDA 13.0: digest of the results of 2^32 drawn pairs"};

/// The steps of one result.
template <class Program>
std::vector<ProgramStep> steps_of(std::uint32_t x, std::uint32_t y) {
  std::vector<ProgramStep> steps;
  traced_steps = &steps;
  result_of<TracedNumber>(Program(), x, y);
  traced_steps = nullptr;
  return steps;
}

template <class Program>
Function function_of(std::string_view name, std::string_view meaning, Program,
                     double (*in_doubles)(double, double)) {
  constexpr bool is_unary = is_of_one<Program>;
  return {.name = name,
          .arch = "sm_90",
          .meaning = meaning,
          .operands = is_unary ? 1 : 2,
          .evidence = is_unary ? all_results : drawn_results,
          .run = run_program<Program>,
          .reference = [](std::uint32_t x,
                          std::uint32_t y) { return result_of<ReferenceNumber>(Program(), x, y); },
          .steps = steps_of<Program>,
          .in_doubles = in_doubles};
}

}  // namespace guardbit::emulator
