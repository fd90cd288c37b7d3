#pragma once

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <string_view>
#include <vector>

#include "emulator/catalogue/accumulator_fields.hpp"
#include "emulator/probe/answers.hpp"

// The fit of an instruction to answers: each field of a given structure is set to the value that
// reproduces most of them. probe.cpp calls this between rounds of questions.
namespace guardbit::emulator {

/// Steps whose fields have one value together: all accumulations, and all additions and conversions
/// between them.
enum class Group { accumulations, scalars };
inline constexpr std::array groups = {Group::accumulations, Group::scalars};

/// The fields that are fitted: all but those of the structure.
const std::vector<AccumulatorField>& probed_fields();

/// The first step of the group; null if there is none.
const Step* first_of(const MatrixInstruction& instruction, Group group);

inline bool belongs(const Step& step, Group group) {
  return (step.operation == Operation::dot) == (group == Group::accumulations);
}

template <class Change>
void change_all(MatrixInstruction& instruction, Group group, Change change) {
  for (int i = 0; i < instruction.steps.count; ++i) {
    Step& step = instruction.steps.list[static_cast<std::size_t>(i)];
    if (belongs(step, group)) change(step);
  }
}

MatrixInstruction with_value(MatrixInstruction instruction, Group group,
                             const AccumulatorField& field, long value);

/// Two confounded fields: while one has a wrong value, the best value of the other may be wrong,
/// too.
struct FieldPair {
  const AccumulatorField *first, *second;
};
const std::vector<FieldPair>& confounded_pairs();

/// The instruction with another value of a field of its accumulations. Of sum_kept_fraction_bits
/// there is a second candidate: min_exponent moves by as much, so that the smallest numbers are cut
/// where they were before.
std::vector<MatrixInstruction> with_grid_value(const MatrixInstruction& instruction,
                                               const AccumulatorField& field, long value);

/// Sets the fields to the values from which a fit starts.
void set_initial_values(MatrixInstruction& instruction);

/// Sets the NaN policies of accumulations and of the steps between them to the pair for which
/// `wrong(instruction)` is least.
void fit_nan_policies(MatrixInstruction& instruction,
                      const std::function<std::size_t(const MatrixInstruction&)>& wrong);

struct Fitted {
  MatrixInstruction instruction;
  std::size_t mismatches = std::numeric_limits<std::size_t>::max();
};

/// The structure and fields that reproduce most answers; of equally good structures the first.
Fitted best_fit(const std::vector<MatrixInstruction>& structures, const AnswersByTopic& training);

/// Other structures that also reproduce every answer, with fields for which they do.
std::vector<MatrixInstruction> equivalent_structures(
    const MatrixInstruction& instruction, const std::vector<MatrixInstruction>& structures,
    const AnswersByTopic& training, const AnswersByTopic& held_out);

/// Fits again after more answers came: the fields first, then other structures if that is not
/// enough.
Fitted refit(const Fitted& fitted, const std::vector<MatrixInstruction>& structures,
             const AnswersByTopic& training);

}  // namespace guardbit::emulator
