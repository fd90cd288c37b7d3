#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "emulator/model/instruction.hpp"
#include "emulator/probe/question_set.hpp"

namespace guardbit::emulator {

/// A field of AccumulatorSpec that a probe can look for.
struct ProbedField {
  std::string_view name;
  Topic topic;  ///< the questions that are about it
  long (*get)(const AccumulatorSpec&);
  void (*set)(AccumulatorSpec&, long);
  std::vector<std::string_view> words;  ///< of the values 0, 1, ...; none: they are numbers
  long least, most;                     ///< numbers that the model can compute with
  /// Every value it may have in this step; empty where the step does not read it.
  std::vector<long> (*values)(const MatrixInstruction&, const Step&);

  std::string text(long value) const {
    return words.empty() ? std::to_string(value)
                         : std::string(words.at(static_cast<std::size_t>(value)));
  }
};

/// In the order in which they are best looked for.
const std::vector<ProbedField>& probed_fields();

std::string_view summation_name(Summation summation);

}  // namespace guardbit::emulator
