#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "emulator/operator_search/operator_search.hpp"

namespace guardbit::emulator {

/// One way to compute an operator on a row, in FP32.
struct RowFormula {
  /// in words
  std::string text;
  /// one number, or as many as the row has, not yet rounded to the result's type
  std::function<std::vector<float>(std::span<const float> row)> results;
};

/// All that are tried for rows of so many elements: every formula with every order of additions.
std::vector<RowFormula> row_formulas(SearchedOperator op, std::int64_t size, float epsilon);

}  // namespace guardbit::emulator
