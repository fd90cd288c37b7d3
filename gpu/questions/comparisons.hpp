#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/questions/questions.hpp"

namespace guardbit::gpu {

/// Fills batch.d: the device, or the model.
using Executor = std::function<void(const TensorCoreInstruction&, Batch&)>;

/// Who answers: what this program's toolkit compiled, and what the driver compiles from PTX.
struct Answerer {
  Executor ahead_of_time, just_in_time;
  const Executor& of(Translation translation) const {
    return translation == Translation::ahead_of_time ? ahead_of_time : just_in_time;
  }
};

/// A rule, and how many outputs of random inputs differ from it.
struct Candidate {
  std::string meaning;
  int differ = 0;
};

/// A question about one instruction that random inputs decide.
struct Comparison {
  const TensorCoreInstruction* row = nullptr;
  int outputs = 0;
  std::vector<Candidate> candidates;

  /// The only candidate from which no output differs; null when none or several are.
  const Candidate* conclusion() const;
};

struct ComparisonQuestion {
  std::string_view id;
  std::string_view text;
  bool (*concerns)(const TensorCoreInstruction& row);
  Comparison (*ask)(const TensorCoreInstruction& row, const Answerer& answerer, std::uint64_t seed);
};

/// Every question that random inputs decide, in order.
const std::vector<ComparisonQuestion>& comparison_questions();

}  // namespace guardbit::gpu
