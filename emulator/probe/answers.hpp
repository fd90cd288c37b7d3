#pragma once

#include <array>
#include <cstddef>
#include <limits>
#include <optional>
#include <random>
#include <vector>

#include "emulator/probe/black_box.hpp"
#include "emulator/probe/question_set.hpp"

// The answers of a unit under test, and their comparison with the model: which answers would an
// instruction reproduce?
namespace guardbit::emulator {

inline constexpr std::array topics = {Topic::grid, Topic::tiny, Topic::specials, Topic::raw};

using Answers = std::vector<Answered>;
/// by topic
using AnswersByTopic = std::array<Answers, topics.size()>;

/// The answer that the model of an instruction gives.
std::uint64_t model(const MatrixInstruction& instruction, const Question& question);

/// The number of answers that the instruction does not reproduce; counting stops at the limit.
std::size_t mismatches(const MatrixInstruction& instruction, const Answers& answers,
                       std::size_t limit = std::numeric_limits<std::size_t>::max());
std::size_t mismatches(const MatrixInstruction& instruction, const AnswersByTopic& by_topic,
                       std::size_t limit = std::numeric_limits<std::size_t>::max());

/// Index of the first answer that the instruction does not reproduce.
std::optional<std::size_t> counterexample(const MatrixInstruction& instruction,
                                          const Answers& answers);

/// Asks the unit. Throws formats::Error if the number of answers is not that of the questions.
Answers ask(const BlackBox& box, std::vector<Question> list);

/// Asks `counts[t]` random questions of each topic, all in one call: a unit may take long to start.
AnswersByTopic ask_each_topic(const BlackBox& box,
                              const std::array<std::size_t, topics.size()>& counts,
                              std::mt19937_64& random);

bool is_nan(const Format& f, std::uint64_t code);

/// Is the code the answer? Where the answer is a NaN that stands for all NaNs, any NaN is.
bool is_answer(const Format& f, std::uint64_t code, const Answered& x);

/// Does the instruction give the answer?
bool reproduces(const MatrixInstruction& instruction, const Answered& x);

}  // namespace guardbit::emulator
