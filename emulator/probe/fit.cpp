#include "emulator/probe/fit.hpp"

namespace guardbit::emulator {

namespace {

/// Of the answers that decide about a field: its topic's, and those that refuted earlier fits.
std::size_t mismatches_for(const ProbedField& field, const MatrixInstruction& row,
                           const Pools& pools,
                           std::size_t limit = std::numeric_limits<std::size_t>::max()) {
  const std::size_t own = mismatches(row, pools[static_cast<std::size_t>(field.topic)], limit);
  return own >= limit ? own : own + mismatches(row, pools.back(), limit - own);
}

/// Sets the fields that questions of `last` and earlier topics are about, one after the other, to
/// the value that explains most of them, until none changes.
void fit(MatrixInstruction& row, const Pools& pools, Topic last) {
  constexpr int most_rounds = 4;
  for (int round = 0; round < most_rounds; ++round) {
    bool changed = false;
    for (const ProbedField& field : probed_fields()) {
      if (field.topic > last) continue;
      for (const Group group : groups) {
        const Step* const step = first_of(row, group);
        if (step == nullptr) continue;
        const long now = field.get(step->spec);
        std::size_t best = mismatches_for(field, row, pools);
        if (best == 0) continue;
        long chosen = now;
        for (const long value : field.values(row, *step)) {
          if (value == now) continue;
          const std::size_t count =
              mismatches_for(field, with_value(row, group, field, value), pools, best);
          if (count >= best) continue;
          best = count;
          chosen = value;
        }
        if (chosen == now) continue;
        row = with_value(row, group, field, chosen);
        changed = true;
      }
    }
    if (!changed) return;
  }
}

const ProbedField& field_named(std::string_view name) {
  return *std::find_if(probed_fields().begin(), probed_fields().end(),
                       [&](const ProbedField& f) { return f.name == name; });
}

/// Do they differ in nothing but fields that are fitted?
bool same_structure(MatrixInstruction x, MatrixInstruction y) {
  for (MatrixInstruction* row : {&x, &y}) {
    for (int i = 0; i < row->steps.count; ++i) {
      AccumulatorSpec& spec = row->steps.list[static_cast<std::size_t>(i)].spec;
      AccumulatorSpec plain;
      plain.summation = spec.summation;
      plain.terms = spec.terms;
      spec = plain;
    }
  }
  return std::equal(x.steps.begin(), x.steps.end(), y.steps.begin(), y.steps.end());
}

/// Of the answers about grids, those that a structure must not miss to be fitted further.
constexpr std::size_t rivals_nearly = 10;

/// Rows with other values of two fields that hide each other: for each value of one the best of the
/// other; those that explain most first.
std::vector<Fitted> paired_values(const MatrixInstruction& row, const Pools& pools) {
  std::vector<Fitted> list;
  const Step* const step = first_of(row, Group::accumulations);
  if (step == nullptr) return list;
  for (const auto& [first, second] : hidden_pairs()) {
    const std::vector<long> seconds = second->values(row, *step);
    for (const long x : first->values(row, *step)) {
      for (const MatrixInstruction& other : with_grid_value(row, *first, x)) {
        Fitted best;
        for (const long y : seconds) {
          const MatrixInstruction both = with_value(other, Group::accumulations, *second, y);
          const std::size_t count = mismatches_for(*first, both, pools, best.mismatches);
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

/// Other fields may have been fitted to the wrong pair: they are fitted again to each likely one.
void fit_pairs(MatrixInstruction& row, const Pools& pools) {
  constexpr std::size_t most_pairs = 8;
  std::vector<Fitted> likely = paired_values(row, pools);
  if (likely.size() > most_pairs) likely.resize(most_pairs);
  std::size_t best = mismatches(row, pools);
  for (Fitted& pair : likely) {
    fit(pair.row, pools, Topic::raw);
    const std::size_t count = mismatches(pair.row, pools);
    if (count >= best) continue;
    best = count;
    row = pair.row;
    if (best == 0) return;
  }
}

}  // namespace

const std::vector<FieldPair>& hidden_pairs() {
  static const std::vector<FieldPair> pairs = {
      {&field_named("kept_fraction_bits"), &field_named("result_fraction_bits")},
      {&field_named("sum_kept_fraction_bits"), &field_named("total_kept_fraction_bits")}};
  return pairs;
}

const Step* first_of(const MatrixInstruction& row, Group group) {
  const auto found = std::find_if(row.steps.begin(), row.steps.end(),
                                  [&](const Step& step) { return belongs(step, group); });
  return found == row.steps.end() ? nullptr : found;
}

MatrixInstruction with_value(MatrixInstruction row, Group group, const ProbedField& field,
                             long value) {
  change_all(row, group, [&](Step& step) { field.set(step.spec, value); });
  return row;
}

std::vector<MatrixInstruction> with_grid_value(const MatrixInstruction& row,
                                               const ProbedField& field, long value) {
  std::vector<MatrixInstruction> rows = {with_value(row, Group::accumulations, field, value)};
  const AccumulatorSpec& spec = first_of(row, Group::accumulations)->spec;
  const long change = value - field.get(spec);
  if (field.name != "sum_kept_fraction_bits" || change == 0) return rows;
  const ProbedField& zero = field_named("min_exponent");
  rows.push_back(with_value(rows[0], Group::accumulations, zero, zero.get(spec) + change));
  return rows;
}

void set_first_guess(MatrixInstruction& row) {
  for (int i = 0; i < row.steps.count; ++i) {
    Step& step = row.steps.list[static_cast<std::size_t>(i)];
    AccumulatorSpec& spec = step.spec;
    spec.result = Rounding::nearest_even;
    if (step.operation != Operation::dot || spec.summation == Summation::integer) continue;
    spec.kept_fraction_bits = 25;
    spec.min_exponent = formats::min_exponent(step.result) - 7;
    if (spec.summation != Summation::two_stage) continue;
    spec.zero_product_exponent = -999;
    spec.sum_kept_fraction_bits = 44;
    spec.total_kept_fraction_bits = 60;
  }
}

void fit_nan_policies(MatrixInstruction& row,
                      const std::function<std::size_t(const MatrixInstruction&)>& wrong) {
  const ProbedField& field = field_named("nan");
  const auto policies = [&](Group group) {
    const Step* const step = first_of(row, group);
    return step == nullptr ? std::vector<long>{0} : field.values(row, *step);
  };
  const std::vector<long> firsts = policies(Group::accumulations);
  const std::vector<long> seconds = policies(Group::scalars);
  std::size_t least = wrong(row);
  // A NaN that one step hands on another may replace: both policies at once.
  for (const long first : firsts) {
    for (const long second : seconds) {
      if (least == 0) return;
      const MatrixInstruction other = with_value(
          with_value(row, Group::accumulations, field, first), Group::scalars, field, second);
      if (const std::size_t count = wrong(other); count < least) {
        least = count;
        row = other;
      }
    }
  }
}

std::vector<MatrixInstruction> rivals_of(const MatrixInstruction& row,
                                         const std::vector<MatrixInstruction>& structures,
                                         const Pools& pools, const Pools& fresh) {
  std::vector<MatrixInstruction> list;
  for (MatrixInstruction other : structures) {
    if (same_structure(other, row)) continue;
    set_first_guess(other);
    fit(other, pools, Topic::grid);
    if (mismatches(other, pools[0], rivals_nearly) >= rivals_nearly) continue;
    fit(other, pools, Topic::raw);
    if (mismatches(other, pools, 1) == 0 && mismatches(other, fresh, 1) == 0) list.push_back(other);
  }
  return list;
}

Fitted best_fit(const std::vector<MatrixInstruction>& structures, const Pools& pools) {
  Fitted best;
  std::size_t best_grid = std::numeric_limits<std::size_t>::max() / 4;
  for (MatrixInstruction row : structures) {
    set_first_guess(row);
    fit(row, pools, Topic::grid);
    const std::size_t grid = mismatches(row, pools[0], 2 * best_grid + 10);
    if (grid >= 2 * best_grid + 10) continue;
    best_grid = std::min(grid, best_grid);
    fit(row, pools, Topic::raw);
    if (mismatches(row, pools) != 0) fit_pairs(row, pools);
    const std::size_t all = mismatches(row, pools);
    if (all < best.mismatches) best = {row, all};
    if (all == 0) break;
  }
  return best;
}

Fitted refit(const Fitted& fitted, const std::vector<MatrixInstruction>& structures,
             const Pools& pools) {
  MatrixInstruction row = fitted.row;
  fit(row, pools, Topic::raw);
  if (mismatches(row, pools) == 0) return {row, 0};
  return best_fit(structures, pools);
}

}  // namespace guardbit::emulator
