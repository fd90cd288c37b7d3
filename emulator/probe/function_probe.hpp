#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "emulator/functions/function_catalogue.hpp"

// Which known function a unit computes, from its answers alone.
namespace guardbit::emulator {

/// What a unit that maps numbers to numbers takes and gives.
struct FunctionShape {
  std::size_t operands = 1, results = 1;
  formats::Format operand = formats::fp32, result = formats::fp32;
};

/// Arguments, an array of codes for each operand: all of a 16-bit format's where there is one
/// operand, else special ones, every binade, and drawn ones.
std::vector<std::vector<std::uint64_t>> function_questions(const FunctionShape& shape,
                                                           std::uint64_t seed);

/// How well a function fits the answers.
struct FunctionFit {
  const Function* function = nullptr;
  std::size_t differing = 0;
  /// indices of the first questions whose answers differ from the function's
  std::vector<std::size_t> first;
};

/// Every function of that shape that a machine has, the ones with fewest differing answers first.
/// `page`: what the machine has in the catalogue (require_page).
std::vector<FunctionFit> fit_functions(const FunctionShape& shape, std::string_view page,
                                       const std::vector<std::vector<std::uint64_t>>& questions,
                                       const std::vector<std::vector<std::uint64_t>>& answers);

}  // namespace guardbit::emulator
