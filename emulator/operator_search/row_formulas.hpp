#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

// Ways to compute a row of a reduction, a softmax or a norm.
namespace guardbit::emulator {

/// What the search knows.
enum class SearchedOperator : std::uint8_t {
  sum,
  mean,
  softmax,
  log_softmax,
  /// without weight and bias
  layer_norm,
  /// without weight
  rms_norm,
  /// over the first dimension, which counts GPUs; by NCCL
  all_reduce,
  /// the same, averages
  all_reduce_avg,
};
constexpr auto words(SearchedOperator) {
  return std::array{"sum",        "mean",     "softmax",    "log_softmax",
                    "layer_norm", "rms_norm", "all_reduce", "all_reduce_avg"};
}

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
