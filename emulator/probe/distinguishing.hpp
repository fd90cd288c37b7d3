#pragma once

// Questions that distinguish hypotheses: given an arithmetic that reproduces all answers and
// alternatives that also do, the models themselves find operands for which they differ. probe.cpp
// asks those, so that either the arithmetic or the alternatives are rejected.

#include <random>
#include <string_view>
#include <vector>

#include "emulator/probe/answers.hpp"

namespace guardbit::emulator {

/// The instruction with other values of one field, or of two confounded ones, that no answer
/// excludes.
std::vector<MatrixInstruction> alternatives_of(const MatrixInstruction& instruction,
                                               const AnswersByTopic& training,
                                               const AnswersByTopic& held_out);

/// The same for the field of that name only.
std::vector<MatrixInstruction> alternatives_in(const MatrixInstruction& instruction,
                                               std::string_view field,
                                               const AnswersByTopic& training,
                                               const AnswersByTopic& held_out);

/// Asks questions for which `instruction` and the others differ; true if an answer contradicts
/// `instruction`. Such answers go to the last topic of `training`, all others to the last topic of
/// `held_out`.
bool ask_distinguishing_questions(const BlackBox& box, const MatrixInstruction& instruction,
                                  const std::vector<MatrixInstruction>& others,
                                  AnswersByTopic& training, AnswersByTopic& held_out,
                                  std::mt19937_64& random);

}  // namespace guardbit::emulator
