#pragma once

#include <array>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "emulator/functions/function_catalogue.hpp"
#include "emulator/functions/function_errors.hpp"

// What is said of functions of the catalogue: lists, one result taken apart, errors.
namespace guardbit::tools {

/// As a table on standard output, and as JSON.
void print_functions(const std::vector<emulator::Function>& functions, bool as_markdown);
nlohmann::ordered_json functions_json(const std::vector<emulator::Function>& functions);

/// How one evaluation came about.
struct FunctionResult {
  const emulator::Function* function = nullptr;
  emulator::OperandCodes operands{};
  emulator::ResultCodes results{};
  /// by the host's doubles
  std::array<double, emulator::most_results> exact{};
};
FunctionResult function_result(const emulator::Function& function,
                               const emulator::OperandCodes& operands);
void print_result(const FunctionResult& r);
nlohmann::ordered_json result_json(const FunctionResult& r);

void print_errors(const emulator::Function& function, const emulator::FunctionErrors& errors);
nlohmann::ordered_json errors_json(const emulator::Function& function,
                                   const emulator::FunctionErrors& errors);

/// "fp32", or of several formats all of them.
std::string operand_formats_text(const emulator::Function& function);

/// "a50b3c", so many digits.
std::string hex_digits(std::uint64_t word, int digits);

}  // namespace guardbit::tools
