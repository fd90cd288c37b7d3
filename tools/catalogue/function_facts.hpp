#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "emulator/functions/function.hpp"
#include "emulator/functions/function_errors.hpp"

// What is said of functions of the catalogue: lists, one result taken apart, errors.
namespace guardbit::tools {

/// As a table on standard output, and as JSON.
void print_functions(const std::vector<emulator::Function>& functions, bool as_markdown);
nlohmann::ordered_json functions_json(const std::vector<emulator::Function>& functions);

/// How one result came about. y does not count for functions of one number.
struct FunctionResult {
  const emulator::Function* function = nullptr;
  std::uint32_t x = 0, y = 0;
  std::uint32_t result = 0;
  /// by the host's doubles
  double exact = 0;
};
FunctionResult function_result(const emulator::Function& function, std::uint32_t x,
                               std::uint32_t y);
void print_result(const FunctionResult& r);
nlohmann::ordered_json result_json(const FunctionResult& r);

void print_errors(const emulator::FunctionErrors& errors);
nlohmann::ordered_json errors_json(const emulator::FunctionErrors& errors);

/// "a50b3c", so many digits.
std::string hex_digits(std::uint64_t word, int digits);

}  // namespace guardbit::tools
