#pragma once

#include <type_traits>
#include <utility>

#include "emulator/engine/cpu.hpp"
#include "emulator/functions/function.hpp"
#include "emulator/functions/function_digest.hpp"
#include "emulator/functions/numbers/flushed_arithmetic.hpp"
#include "emulator/functions/numbers/host_number.hpp"
#include "emulator/functions/numbers/narrowed.hpp"
#include "emulator/functions/numbers/reference_number.hpp"

// A program of numbers as a function of codes. A Program is an object without state. It takes one
// to four arguments, FP32 numbers of any type or, of integer formats, words, and returns one result
// or a std::array of two. Arguments of narrower formats are widened, results rounded to theirs.
namespace guardbit::emulator {

inline constexpr FunctionFormats formats_of_fp32 = {};

/// The argument that a code of the program's operand means.
template <class Number, const FunctionFormats& formats, std::size_t operand>
constexpr auto argument_of(std::uint32_t code) {
  constexpr formats::Format format = formats.operands[operand];
  if constexpr (format.encoding == formats::Encoding::integer) {
    return code;
  } else if constexpr (format == formats::fp32) {
    return Number::of(code);
  } else {
    return Number::of(widened_code(format, code));
  }
}

/// The code of a result.
template <const FunctionFormats& formats, std::size_t result, class Number>
constexpr std::uint32_t code_of_result(Number x) {
  constexpr formats::Format format = formats.results[result];
  if constexpr (format.encoding == formats::Encoding::integer) {
    return x;
  } else if constexpr (format == formats::fp32) {
    return with_one_nan(bits(x));
  } else {
    return narrowed_code(format, bits(x));
  }
}

/// How many arguments a Program takes.
template <class Program, const FunctionFormats& formats>
constexpr std::size_t operands_of() {
  const auto takes = []<std::size_t... i>(std::index_sequence<i...>) {
    return std::is_invocable_v<Program, decltype(argument_of<HostNumber, formats, i>(0))...>;
  };
  if (takes(std::make_index_sequence<1>())) return 1;
  if (takes(std::make_index_sequence<2>())) return 2;
  if (takes(std::make_index_sequence<3>())) return 3;
  return 4;
}

/// The results' codes of a Program whose arguments come from code(operand's number).
template <class Number, class Program, const FunctionFormats& formats, class Codes>
constexpr auto results_of(const Codes& code) {
  constexpr auto all = std::make_index_sequence<operands_of<Program, formats>()>();
  const auto result = [&]<std::size_t... i>(std::index_sequence<i...>) {
    return Program()(argument_of<Number, formats, i>(code(i))...);
  }
  (all);
  if constexpr (requires { std::get<1>(result); }) {
    return std::array{code_of_result<formats, 0>(std::get<0>(result)),
                      code_of_result<formats, 1>(std::get<1>(result))};
  } else {
    return std::array{code_of_result<formats, 0>(result)};
  }
}

template <class Number, class Program, const FunctionFormats& formats>
void run_each(const CodeArrays<std::uint32_t>& arrays) {
  for (std::size_t i = 0; i < arrays.results[0].size(); ++i) {
    const auto codes = results_of<Number, Program, formats>(
        [&](std::size_t operand) { return arrays.operands[operand][i]; });
    for (std::size_t k = 0; k < codes.size(); ++k) arrays.results[k][i] = codes[k];
  }
}

/// Whether a Program is one of those that kernels have where the CPU does
/// (kernels/kernel_programs.hpp): of one FP32 number or two, with one result.
template <class Program, const FunctionFormats& formats>
constexpr bool has_kernel() {
  using Codes = decltype(results_of<HostNumber, Program, formats>(
      [](std::size_t) { return std::uint32_t{0}; }));
  if (requires { typename Program::OnFlushingCpu; }) return false;
  return operands_of<Program, formats>() <= 2 && std::tuple_size_v<Codes> == 1 &&
         formats.operands[0] == formats::fp32 && formats.operands[1] == formats::fp32 &&
         formats.results[0] == formats::fp32;
}

#if defined(__x86_64__)
// Fused steps are the CPU's own instruction here, not a call.
template <class Program, const FunctionFormats& formats>
[[gnu::target("avx2,fma"), gnu::flatten, gnu::noinline]] void run_each_on_x86(
    const CodeArrays<std::uint32_t>& arrays) {
  run_each<HostNumber, Program, formats>(arrays);
}
/// The same for steps that flush, which the CPU does at no cost.
template <class Program, const FunctionFormats& formats>
void run_each_flushed_on_x86(const CodeArrays<std::uint32_t>& arrays) {
  const FlushedArithmetic flushed;
  run_each_on_x86<typename Program::OnFlushingCpu, formats>(arrays);
}
template <class Program, const FunctionFormats& formats>
auto run_of_this_cpu() {
  if constexpr (has_kernel<Program, formats>()) {
    return run_each<BaselineNumber, Program, formats>;
  } else if (!cpu::features().avx2_kernels) {
    return run_each<HostNumber, Program, formats>;
  } else if constexpr (requires { typename Program::OnFlushingCpu; }) {
    return run_each_flushed_on_x86<Program, formats>;
  } else {
    return run_each_on_x86<Program, formats>;
  }
}
template <class Program, const FunctionFormats& formats>
void run_program(const CodeArrays<std::uint32_t>& arrays) {
  static const auto run = run_of_this_cpu<Program, formats>();
  run(arrays);
}
#else
template <class Program, const FunctionFormats& formats>
void run_program(const CodeArrays<std::uint32_t>& arrays) {
  run_each<HostNumber, Program, formats>(arrays);
}
#endif

/// One evaluation of a Program in numbers of a type.
template <class Number, class Program, const FunctionFormats& formats>
ResultCodes one_result(const OperandCodes& operands) {
  const auto codes = results_of<Number, Program, formats>(
      [&](std::size_t operand) { return static_cast<std::uint32_t>(operands[operand]); });
  ResultCodes results{};
  for (std::size_t k = 0; k < codes.size(); ++k) results[k] = codes[k];
  return results;
}

/// What does not depend on a Program's name.
struct ProgramCode {
  std::size_t operands, results;
  const FunctionFormats* formats;
  void (*run)(const CodeArrays<std::uint32_t>&);
  ResultCodes (*reference)(const OperandCodes&);
};
template <class Program, const FunctionFormats& formats = formats_of_fp32>
constexpr ProgramCode code_of() {
  using Codes = decltype(results_of<HostNumber, Program, formats>(
      [](std::size_t) { return std::uint32_t{0}; }));
  return {operands_of<Program, formats>(), std::tuple_size_v<Codes>, &formats,
          run_program<Program, formats>, one_result<TracedNumber, Program, formats>};
}

/// A function of one to four doubles, itself one double or an array of two, as an entry has it.
using InDoubles = decltype(Function::in_doubles);
InDoubles in_doubles(double (*exact)(double));
InDoubles in_doubles(double (*exact)(double, double));
InDoubles in_doubles(double (*exact)(double, double, double));
InDoubles in_doubles(double (*exact)(double, double, double, double));
InDoubles in_doubles(std::array<double, most_results> (*exact)(double));
InDoubles in_doubles(std::array<double, most_results> (*exact)(double, double));

inline constexpr Evidence all_results = {Basis::measured,
                                         "H100, CUDA 13.0: digest of all 2^32 results"};
inline constexpr Evidence all_codes_of_16_bits = {Basis::measured,
                                                  "H100, CUDA 13.0: digest of all 2^16 results"};
inline constexpr Evidence drawn_results = {
    Basis::measured, "H100, CUDA 13.0: digest of the results of 2^32 drawn pairs"};

/// The entry of the catalogue.
Function function_of(std::string_view name, std::string_view meaning, const ProgramCode& code,
                     InDoubles exact);

/// A Program as an entry of the catalogue; `exact` is the function of doubles.
template <const FunctionFormats& formats = formats_of_fp32, class Program, class Exact>
Function function_of(std::string_view name, std::string_view meaning, Program, Exact exact) {
  return function_of(name, meaning, code_of<Program, formats>(), in_doubles(exact));
}

}  // namespace guardbit::emulator
