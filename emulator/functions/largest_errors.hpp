#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "emulator/functions/function.hpp"

// The largest error of each function, and an input that has it. largest_errors_table.cpp is written
// by guardbit_update_function_errors (tests/recorders), which asks every function of the catalogue.
namespace guardbit::emulator {

/// Which inputs were asked.
enum class ErrorInputs : std::uint8_t {
  /// every one; of an FP64 operand every high word, with a low word of 0
  all,
  /// every 1009th code
  every_1009th,
  /// 2^20 that drawn_inputs gives: families that cross every branch
  drawn,
  /// none: a result is rounded once, so it is the nearest number or next to it
  definition,
};
constexpr auto words(ErrorInputs) {
  return std::array{"all", "every_1009th", "drawn", "definition"};
}
inline constexpr std::uint64_t error_stride = 1009;
inline constexpr std::uint64_t drawn_error_inputs = std::uint64_t{1} << 20;

/// Of first results that count (function_errors.hpp), of finite operands.
struct LargestError {
  std::string_view function;
  CompileMode compile = CompileMode::standard;
  double ulp = 0;
  ErrorInputs asked = ErrorInputs::all;
  OperandCodes at{};

  /// An error of 0 and one by definition are nowhere in particular.
  bool has_place() const { return ulp > 0 && asked != ErrorInputs::definition; }
};

std::span<const LargestError> largest_errors();

/// A function's; null where the host's doubles cannot tell.
const LargestError* find_largest_error(const Function& function);

/// The operands of that number for functions of two and more, as far as the function has them.
OperandCodes drawn_inputs(const Function& function, std::uint64_t number);

}  // namespace guardbit::emulator
