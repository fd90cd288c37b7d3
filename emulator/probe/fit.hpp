#pragma once

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <string_view>
#include <vector>

#include "emulator/catalogue/accumulator_fields.hpp"
#include "emulator/probe/answers.hpp"

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

/// The row with another value of a field of its accumulations; of bits kept of a product sum also
/// with the zero's exponent moved along, which leaves the grid of the least numbers where it was.
std::vector<MatrixInstruction> with_grid_value(const MatrixInstruction& row,
                                               const ProbedField& field, long value);

void set_first_guess(MatrixInstruction& row);

/// Sets what becomes of NaNs in accumulations and in the steps between them to what `wrong(row)`
/// counts least of.
void fit_nan_policies(MatrixInstruction& row,
                      const std::function<std::size_t(const MatrixInstruction&)>& wrong);

struct Fitted {
  MatrixInstruction row;
  std::size_t mismatches = std::numeric_limits<std::size_t>::max();
};

/// The structure and fields that explain most answers, the first such structure.
Fitted best_fit(const std::vector<MatrixInstruction>& structures, const Pools& pools);

/// Other structures that explain every answer, too, their fields set so that they do; in each
/// format of intermediate results and each way of summing.
std::vector<MatrixInstruction> rivals_of(const MatrixInstruction& row,
                                         const std::vector<MatrixInstruction>& structures,
                                         const Pools& pools, const Pools& fresh);

/// The fields of what was fitted to fewer answers, or another structure where these do not give
/// them all.
Fitted refit(const Fitted& fitted, const std::vector<MatrixInstruction>& structures,
             const Pools& pools);

}  // namespace guardbit::emulator
