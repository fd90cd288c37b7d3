#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "emulator/functions/compile_mode.hpp"
#include "emulator/functions/numbers/traced_number.hpp"
#include "emulator/functions/unit/special_function_formats.hpp"
#include "emulator/functions/unit/special_function_forms.hpp"
#include "emulator/model/instruction.hpp"
#include "formats/format_catalogue.hpp"

// A function that a GPU computes, as an entry of the catalogue of functions.
namespace guardbit::emulator {

/// As many as a function may have.
inline constexpr std::size_t most_operands = 4, most_results = 2;

/// Codes of one evaluation, each in its format. What a function does not have is 0.
using OperandCodes = std::array<std::uint64_t, most_operands>;
using ResultCodes = std::array<std::uint64_t, most_results>;

/// Codes of many evaluations: an array for each operand and each result, of equal length. Those
/// that a function does not have are empty.
template <class Word>
struct CodeArrays {
  std::array<std::span<const Word>, most_operands> operands{};
  std::array<std::span<Word>, most_results> results{};
};

/// FP32 where nothing else is said.
struct FunctionFormats {
  std::array<formats::Format, most_operands> operands{formats::fp32, formats::fp32, formats::fp32,
                                                      formats::fp32};
  std::array<formats::Format, most_results> results{formats::fp32, formats::fp32};
};

/// All operands and results of one format.
constexpr FunctionFormats formats_of(const formats::Format& format) {
  return {{format, format, format, format}, {format, format}};
}

struct Function {
  /// PTX's, as in ex2.approx.ftz.f32, CUDA's, as in expf, or AMD's, as in v_exp_f32
  std::string_view name;
  std::string_view arch;
  /// what it computes, in few words
  std::string_view meaning;
  std::size_t operands = 1, results = 1;
  FunctionFormats formats{};
  /// how nvcc compiles it; PTX's instructions are what they are
  CompileMode compile = CompileMode::standard;
  Evidence evidence;
  /// the special function unit's steps, if it is nothing else
  const mufu::SpecialFunctionForm* form = nullptr;
  const mufu::FormattedForm* formatted_form = nullptr;
  /// The results of many arguments, by the host's own units where they are as good. A NaN of FP32
  /// is 0x7fffffff on NVIDIA's machines. A function that has a format of more than 32 bits has
  /// run_wide, others run.
  std::function<void(const CodeArrays<std::uint32_t>&)> run;
  std::function<void(const CodeArrays<std::uint64_t>&)> run_wide;
  /// what `run` is: avx512 or avx2 where there is such a kernel (kernels/function_kernels.hpp)
  std::string_view engine = "portable";
  /// `run` without a kernel, where it has one
  std::function<void(const CodeArrays<std::uint32_t>&)> run_without_kernel{};
  /// The same of one, in integers; and its steps.
  std::function<ResultCodes(const OperandCodes&)> reference;
  std::function<std::vector<ProgramStep>(const OperandCodes&)> steps;
  /// The function itself, as far as the host's doubles have it. Not a model: no bits rest on it.
  std::function<std::array<double, most_results>(const std::array<double, most_operands>&)>
      in_doubles;
};

}  // namespace guardbit::emulator
