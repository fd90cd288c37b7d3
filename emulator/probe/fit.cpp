#include "emulator/probe/fit.hpp"

namespace guardbit::emulator {

namespace {

/// Mismatches among the answers that decide about a field: those of its topic, and the
/// counterexamples to earlier fits.
std::size_t mismatches_for(const AccumulatorField& field, const MatrixInstruction& instruction,
                           const AnswersByTopic& training,
                           std::size_t limit = std::numeric_limits<std::size_t>::max()) {
  const std::size_t own =
      mismatches(instruction, training[static_cast<std::size_t>(topic_of(field.concern))], limit);
  return own >= limit ? own : own + mismatches(instruction, training.back(), limit - own);
}

/// Sets each field that topics up to `last` show to the value that reproduces most answers, one
/// field after the other, until none changes.
void fit(MatrixInstruction& instruction, const AnswersByTopic& training, Topic last) {
  constexpr int most_rounds = 4;
  for (int round = 0; round < most_rounds; ++round) {
    bool changed = false;
    for (const AccumulatorField& field : probed_fields()) {
      if (topic_of(field.concern) > last) continue;
      for (const Group group : groups) {
        const Step* const step = first_of(instruction, group);
        if (step == nullptr) continue;
        const long now = field.get(step->spec);
        std::size_t best = mismatches_for(field, instruction, training);
        if (best == 0) continue;
        long chosen = now;
        for (const long value : field.values(instruction, *step)) {
          if (value == now) continue;
          const std::size_t count =
              mismatches_for(field, with_value(instruction, group, field, value), training, best);
          if (count >= best) continue;
          best = count;
          chosen = value;
        }
        if (chosen == now) continue;
        instruction = with_value(instruction, group, field, chosen);
        changed = true;
      }
    }
    if (!changed) return;
  }
}

/// Two grids of one width are the one grid of a fused sum, unless bits are inverted.
bool may_be_fused(const MatrixInstruction& instruction) {
  return std::any_of(instruction.steps.begin(), instruction.steps.end(), [](const Step& step) {
    return step.operation == Operation::dot && step.spec.summation == Summation::two_grids &&
           step.spec.subtraction == Subtraction::twos_complement;
  });
}

/// Do the instructions differ only in fields that are fitted?
bool same_structure(MatrixInstruction x, MatrixInstruction y) {
  for (MatrixInstruction* instruction : {&x, &y}) {
    for (int i = 0; i < instruction->steps.count; ++i) {
      AccumulatorSpec& spec = instruction->steps.list[static_cast<std::size_t>(i)].spec;
      AccumulatorSpec plain;
      plain.summation = spec.summation;
      plain.terms = spec.terms;
      spec = plain;
    }
  }
  return std::equal(x.steps.begin(), x.steps.end(), y.steps.begin(), y.steps.end());
}

/// A structure with this many mismatches among the answers of topic `grid` is not fitted further.
constexpr std::size_t nearly_equivalent = 10;

/// Instructions with other values of two confounded fields: for each value of the first the best of
/// the second, ordered by mismatches.
std::vector<Fitted> paired_values(const MatrixInstruction& instruction,
                                  const AnswersByTopic& training) {
  std::vector<Fitted> list;
  const Step* const step = first_of(instruction, Group::accumulations);
  if (step == nullptr) return list;
  for (const auto& [first, second] : confounded_pairs()) {
    const std::vector<long> seconds = second->values(instruction, *step);
    for (const long x : first->values(instruction, *step)) {
      for (const MatrixInstruction& other : with_grid_value(instruction, *first, x)) {
        Fitted best;
        for (const long y : seconds) {
          const MatrixInstruction both = with_value(other, Group::accumulations, *second, y);
          const std::size_t count = mismatches_for(*first, both, training, best.mismatches);
          if (count < best.mismatches) best = {both, count};
        }
        list.push_back(best);
      }
    }
  }
  std::stable_sort(list.begin(), list.end(),
                   [](const Fitted& x, const Fitted& y) { return x.mismatches < y.mismatches; });
  return list;
}

/// Tries the likeliest values of confounded fields. The other fields may have been fitted to wrong
/// ones, so they are fitted again to each pair.
void fit_pairs(MatrixInstruction& instruction, const AnswersByTopic& training) {
  constexpr std::size_t most_pairs = 8;
  std::vector<Fitted> likely = paired_values(instruction, training);
  if (likely.size() > most_pairs) likely.resize(most_pairs);
  std::size_t best = mismatches(instruction, training);
  for (Fitted& pair : likely) {
    fit(pair.instruction, training, Topic::raw);
    const std::size_t count = mismatches(pair.instruction, training);
    if (count >= best) continue;
    best = count;
    instruction = pair.instruction;
    if (best == 0) return;
  }
}

}  // namespace

const std::vector<FieldPair>& confounded_pairs() {
  static const std::vector<FieldPair> pairs = {
      {&accumulator_field("kept_fraction_bits"), &accumulator_field("result_fraction_bits")},
      {&accumulator_field("result_fraction_bits"), &accumulator_field("result")},
      {&accumulator_field("kept_fraction_bits"), &accumulator_field("addend_kept_fraction_bits")},
      {&accumulator_field("sum_kept_fraction_bits"),
       &accumulator_field("total_kept_fraction_bits")}};
  return pairs;
}

const std::vector<AccumulatorField>& probed_fields() {
  static const std::vector<AccumulatorField> fields = [] {
    std::vector<AccumulatorField> list;
    for (const AccumulatorField& field : accumulator_fields())
      if (field.concern != FieldConcern::structure) list.push_back(field);
    return list;
  }();
  return fields;
}

const Step* first_of(const MatrixInstruction& instruction, Group group) {
  const auto found = std::find_if(instruction.steps.begin(), instruction.steps.end(),
                                  [&](const Step& step) { return belongs(step, group); });
  return found == instruction.steps.end() ? nullptr : found;
}

MatrixInstruction with_value(MatrixInstruction instruction, Group group,
                             const AccumulatorField& field, long value) {
  change_all(instruction, group, [&](Step& step) { field.set(step.spec, value); });
  return instruction;
}

std::vector<MatrixInstruction> with_grid_value(const MatrixInstruction& instruction,
                                               const AccumulatorField& field, long value) {
  std::vector<MatrixInstruction> instructions = {
      with_value(instruction, Group::accumulations, field, value)};
  const AccumulatorSpec& spec = first_of(instruction, Group::accumulations)->spec;
  const long change = value - field.get(spec);
  if (field.name != "sum_kept_fraction_bits" || change == 0) return instructions;
  const AccumulatorField& zero = accumulator_field("min_exponent");
  instructions.push_back(
      with_value(instructions[0], Group::accumulations, zero, zero.get(spec) + change));
  return instructions;
}

void set_initial_values(MatrixInstruction& instruction) {
  for (int i = 0; i < instruction.steps.count; ++i) {
    Step& step = instruction.steps.list[static_cast<std::size_t>(i)];
    AccumulatorSpec& spec = step.spec;
    spec.result = Rounding::nearest_even;
    if (step.operation != Operation::dot || spec.summation == Summation::integer) continue;
    spec.kept_fraction_bits = 25;
    spec.min_exponent = formats::min_exponent(step.result) - 7;
    if (spec.summation != Summation::two_stage && spec.summation != Summation::two_grids) continue;
    spec.zero_product_exponent = -999;
    if (spec.summation == Summation::two_grids) {
      spec.min_exponent = formats::min_exponent(step.result);
      spec.addend_kept_fraction_bits = 25;
      spec.subtraction = Subtraction::ones_complement;
      continue;
    }
    spec.sum_kept_fraction_bits = 44;
    spec.total_kept_fraction_bits = 0;
  }
}

void fit_nan_policies(MatrixInstruction& instruction,
                      const std::function<std::size_t(const MatrixInstruction&)>& wrong) {
  const AccumulatorField& field = accumulator_field("nan");
  const auto policies = [&](Group group) {
    const Step* const step = first_of(instruction, group);
    return step == nullptr ? std::vector<long>{0} : field.values(instruction, *step);
  };
  const std::vector<long> firsts = policies(Group::accumulations);
  const std::vector<long> seconds = policies(Group::scalars);
  std::size_t least = wrong(instruction);
  // A later step may replace the NaN of an earlier one, so both policies are tried together.
  for (const long first : firsts) {
    for (const long second : seconds) {
      if (least == 0) return;
      const MatrixInstruction other =
          with_value(with_value(instruction, Group::accumulations, field, first), Group::scalars,
                     field, second);
      if (const std::size_t count = wrong(other); count < least) {
        least = count;
        instruction = other;
      }
    }
  }
}

std::vector<MatrixInstruction> equivalent_structures(
    const MatrixInstruction& instruction, const std::vector<MatrixInstruction>& structures,
    const AnswersByTopic& training, const AnswersByTopic& held_out) {
  std::vector<MatrixInstruction> list;
  for (MatrixInstruction other : structures) {
    if (same_structure(other, instruction)) continue;
    set_initial_values(other);
    fit(other, training, Topic::grid);
    if (mismatches(other, training[0], nearly_equivalent) >= nearly_equivalent) continue;
    fit(other, training, Topic::raw);
    if (!may_be_fused(other) && mismatches(other, training, 1) == 0 &&
        mismatches(other, held_out, 1) == 0)
      list.push_back(other);
  }
  return list;
}

Fitted best_fit(const std::vector<MatrixInstruction>& structures, const AnswersByTopic& training) {
  Fitted best;
  std::size_t best_grid = std::numeric_limits<std::size_t>::max() / 4;
  for (MatrixInstruction instruction : structures) {
    set_initial_values(instruction);
    fit(instruction, training, Topic::grid);
    const std::size_t grid = mismatches(instruction, training[0], 2 * best_grid + 10);
    if (grid >= 2 * best_grid + 10) continue;
    best_grid = std::min(grid, best_grid);
    fit(instruction, training, Topic::raw);
    if (mismatches(instruction, training) != 0) fit_pairs(instruction, training);
    const std::size_t all = mismatches(instruction, training);
    if (all < best.mismatches) best = {instruction, all};
    if (all == 0) break;
  }
  return best;
}

Fitted refit(const Fitted& fitted, const std::vector<MatrixInstruction>& structures,
             const AnswersByTopic& training) {
  MatrixInstruction instruction = fitted.instruction;
  fit(instruction, training, Topic::raw);
  if (mismatches(instruction, training) == 0) return {instruction, 0};
  return best_fit(structures, training);
}

}  // namespace guardbit::emulator
