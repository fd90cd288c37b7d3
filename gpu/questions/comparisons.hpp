#pragma once

// Questions that random inputs decide: a device executes an instruction on random operands, and
// the outputs are compared with those of several rules. The only rule without a difference is
// supported.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/questions/questions.hpp"

namespace guardbit::gpu {

/// Computes batch.d from the other operands: on a device, or by a model.
using Executor = std::function<void(const TensorCoreInstruction&, Batch&)>;

/// Executors of the machine code that this program's toolkit compiled, and of the code that the
/// driver compiles from PTX.
struct Executors {
  Executor ahead_of_time, just_in_time;
  const Executor& of(Translation translation) const {
    return translation == Translation::ahead_of_time ? ahead_of_time : just_in_time;
  }
};

/// A rule, and the number of outputs that differ from its own.
struct ComparedRule {
  std::string meaning;
  int differ = 0;
};

/// Random outputs of one instruction, compared with each rule.
struct Comparison {
  const TensorCoreInstruction* instruction = nullptr;
  int outputs = 0;
  std::vector<ComparedRule> rules;

  /// The only rule from which no output differs; null (undecided) when there is none or several.
  const ComparedRule* supported() const;
};

struct ComparisonQuestion {
  std::string_view id;
  std::string_view text;
  bool (*concerns)(const TensorCoreInstruction& instruction);
  Comparison (*test)(const TensorCoreInstruction& instruction, const Executors& executors,
                     std::uint64_t seed);
};

/// Every question that random inputs decide, in order.
const std::vector<ComparisonQuestion>& comparison_questions();

}  // namespace guardbit::gpu
