#pragma once

#include <algorithm>
#include <array>
#include <limits>
#include <vector>

#include "emulator/probe_answers.hpp"
#include "emulator/probe_fields.hpp"

// Fields of a structure set so that they explain the answers.
namespace guardbit::emulator {

/// The two kinds of steps whose fields are looked for together: accumulations, and the additions
/// and conversions between them.
enum class Group { accumulations, scalars };
inline constexpr std::array groups = {Group::accumulations, Group::scalars};

/// The first step of the group; null where there is none.
const Step* first_of(const MatrixInstruction& row, Group group);

inline bool belongs(const Step& step, Group group) {
  return (step.operation == Operation::dot) == (group == Group::accumulations);
}

template <class Change>
void change_all(MatrixInstruction& row, Group group, Change change) {
  for (int i = 0; i < row.steps.count; ++i) {
    Step& step = row.steps.list[static_cast<std::size_t>(i)];
    if (belongs(step, group)) change(step);
  }
}

MatrixInstruction with_value(MatrixInstruction row, Group group, const ProbedField& field,
                             long value);

/// Fields that hide each other: one alone may look best at the other's place.
struct FieldPair {
  const ProbedField *first, *second;
};
const std::vector<FieldPair>& hidden_pairs();

void set_first_guess(MatrixInstruction& row);

struct Fitted {
  MatrixInstruction row;
  std::size_t mismatches = std::numeric_limits<std::size_t>::max();
};

/// The structure and fields that explain most answers, the first such structure.
Fitted best_fit(const std::vector<MatrixInstruction>& structures, const Pools& pools);

/// The fields of what was fitted to fewer answers, or another structure where these do not give
/// them all.
Fitted refit(const Fitted& fitted, const std::vector<MatrixInstruction>& structures,
             const Pools& pools);

}  // namespace guardbit::emulator
