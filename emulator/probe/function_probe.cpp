#include "emulator/probe/function_probe.hpp"

#include <algorithm>

#include "emulator/catalogue/instruction_catalogue.hpp"
#include "emulator/functions/drawn_operands.hpp"

namespace guardbit::emulator {

namespace {

constexpr std::size_t drawn_questions = 1 << 14;

bool has_shape(const Function& function, const FunctionShape& shape) {
  if (function.operands != shape.operands || function.results != shape.results) return false;
  for (std::size_t i = 0; i < shape.operands; ++i)
    if (function.formats.operands.at(i) != shape.operand) return false;
  return function.formats.results[0] == shape.result;
}

/// Codes of one operand: the ends and some of each binade, with both signs.
std::vector<std::uint64_t> codes_of_binades(const formats::Format& format) {
  std::vector<std::uint64_t> codes;
  const std::uint64_t exponents = std::uint64_t{1} << format.exponent_bits;
  for (std::uint64_t exponent = 0; exponent < exponents; ++exponent)
    for (std::uint64_t part = 0; part < 8; ++part) {
      const std::uint64_t code =
          exponent << format.fraction_bits | formats::fraction_mask(format) / 7 * part;
      codes.push_back(code);
      codes.push_back(code | formats::sign_mask(format));
    }
  return codes;
}

}  // namespace

std::vector<std::vector<std::uint64_t>> function_questions(const FunctionShape& shape,
                                                           std::uint64_t seed) {
  std::vector<std::vector<std::uint64_t>> questions(shape.operands);
  if (shape.operands == 1 && formats::bits(shape.operand) <= 16) {
    for (std::uint64_t code = 0; code <= formats::code_mask(shape.operand); ++code)
      questions[0].push_back(code);
    return questions;
  }
  if (shape.operands == 1) questions[0] = codes_of_binades(shape.operand);
  for (std::uint64_t i = 0; i < drawn_questions; ++i) {
    const auto codes = drawn_operands(shape.operand, i + seed * drawn_questions);
    for (std::size_t k = 0; k < shape.operands; ++k) questions[k].push_back(codes.at(k));
  }
  return questions;
}

std::vector<FunctionFit> fit_functions(const FunctionShape& shape, std::string_view page,
                                       const std::vector<std::vector<std::uint64_t>>& questions,
                                       const std::vector<std::vector<std::uint64_t>>& answers) {
  constexpr std::size_t most_first = 3;
  std::vector<FunctionFit> fits;
  for (const Function& function : function_catalogue()) {
    if (function.arch != page || !has_shape(function, shape)) continue;
    FunctionFit fit = {&function, 0, {}};
    const auto results = function_results(function, questions);
    for (std::size_t i = 0; i < answers.at(0).size(); ++i) {
      bool is_same = true;
      for (std::size_t k = 0; k < results.size(); ++k)
        is_same = is_same && same_function_result(function.formats.results.at(k), answers.at(k)[i],
                                                  results[k][i]);
      if (is_same) continue;
      if (++fit.differing <= most_first) fit.first.push_back(i);
    }
    fits.push_back(fit);
  }
  std::ranges::stable_sort(fits, {}, &FunctionFit::differing);
  return fits;
}

}  // namespace guardbit::emulator
