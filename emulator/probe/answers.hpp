#pragma once

#include <array>
#include <cstddef>
#include <limits>
#include <optional>
#include <random>
#include <vector>

#include "emulator/probe/probe.hpp"
#include "emulator/probe/question_set.hpp"

// What a unit was asked and what rows would have answered.
namespace guardbit::emulator {

inline constexpr std::array topics = {Topic::grid, Topic::tiny, Topic::specials, Topic::raw};

using Pool = std::vector<Answered>;
using Pools = std::array<Pool, topics.size()>;  ///< by topic

/// What the row answers.
std::uint64_t model(const MatrixInstruction& row, const Question& question);

/// Answers that the row does not give; counted up to the limit.
std::size_t mismatches(const MatrixInstruction& row, const Pool& pool,
                       std::size_t limit = std::numeric_limits<std::size_t>::max());
std::size_t mismatches(const MatrixInstruction& row, const Pools& pools,
                       std::size_t limit = std::numeric_limits<std::size_t>::max());

/// Index of the first answer that the row does not give.
std::optional<std::size_t> refutation(const MatrixInstruction& row, const Pool& answers);

/// formats::Error when the unit gives another number of answers.
Pool asked(const BlackBox& box, std::vector<Question> list);

/// One question to the unit for all topics: a unit may take long to start.
Pools asked_of_each_topic(const BlackBox& box, const std::array<std::size_t, topics.size()>& counts,
                          std::mt19937_64& random);

bool is_nan(const Format& f, std::uint64_t code);

/// Is it the answer, or any NaN where a NaN is the answer and stands for all?
bool is_answer(const Format& f, std::uint64_t code, const Answered& x);

/// Does the row give the answer?
bool gives(const MatrixInstruction& row, const Answered& x);

}  // namespace guardbit::emulator
