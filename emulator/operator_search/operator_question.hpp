#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "emulator/operator_search/row_formulas.hpp"
#include "emulator/operators/operator_tensor.hpp"

// What is asked of an operator's input and output, and the answer.
namespace guardbit::emulator {

struct OperatorQuestion {
  SearchedOperator op = SearchedOperator::sum;
  /// FP32, FP16 or BF16
  operators::Tensor input, output;
  /// may count from the end; of sum and mean nothing means all
  std::optional<std::int64_t> dimension;
  /// of norms
  double epsilon = 1e-5;
  int threads = 1;
  /// how errors call the three
  std::string input_place = "input", output_place = "output", dimension_place = "dimension";
  /// asked now and then; true ends the search
  std::function<bool()> interrupted = [] { return false; };
};

struct RuleResult {
  /// the formula and the order, in words
  std::string rule;
  /// of many rows, an estimate by the first ones where they miss some already
  std::int64_t mismatches = 0;
};

struct OperatorAnswer {
  /// rules that give every output, likely ones first
  std::vector<RuleResult> exact;
  /// of the others the one that misses fewest
  std::optional<RuleResult> nearest;
  std::int64_t outputs = 0, tried = 0;
  /// Outputs that the first exact rule would have missed had the rows' elements come in another,
  /// random order: those that speak for its order.
  std::int64_t refuting = 0;
  bool explained() const { return !exact.empty(); }
};

}  // namespace guardbit::emulator
