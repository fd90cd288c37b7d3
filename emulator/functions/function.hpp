#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "emulator/functions/numbers/traced_number.hpp"
#include "emulator/functions/unit/special_function_forms.hpp"
#include "emulator/model/instruction.hpp"

// A function that a GPU computes, as an entry of the catalogue of functions.
namespace guardbit::emulator {

/// FunctionCodes of FP32.
using FunctionCodes = std::span<const std::uint32_t>;

struct Function {
  /// PTX's, as in ex2.approx.ftz.f32, or CUDA's, as in expf
  std::string_view name;
  std::string_view arch;
  /// what it computes, in few words
  std::string_view meaning;
  int operands = 1;
  Evidence evidence;
  /// the special function unit's steps, if it is nothing else
  const mufu::SpecialFunctionForm* form = nullptr;
  /// The results of as many arguments, by the host's own units; y is empty for functions of one
  /// number. A NaN is 0x7fffffff.
  void (*run)(FunctionCodes x, FunctionCodes y, std::span<std::uint32_t> results) = nullptr;
  /// One result, in integers; and its steps.
  std::uint32_t (*reference)(std::uint32_t x, std::uint32_t y) = nullptr;
  std::vector<ProgramStep> (*steps)(std::uint32_t x, std::uint32_t y) = nullptr;
  /// The function itself, as far as the host's doubles have it. Not a model: no bits rest on it.
  double (*in_doubles)(double x, double y) = nullptr;
};

}  // namespace guardbit::emulator
