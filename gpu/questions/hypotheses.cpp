#include "gpu/questions/hypotheses.hpp"

#include <algorithm>
#include <array>

#include "formats/support/error.hpp"

namespace guardbit::gpu {

namespace {

std::uint64_t exact_word(const Format& format, long double value, std::string_view where) {
  const std::uint64_t word = word_of(format, value);
  if (value_of(format, word) != value)
    throw formats::Error(std::string(where), "a number does not fit the operand's format");
  return word;
}

/// The metadata of a stored value of a sparse A: positions vary by row and group, and ascend.
std::uint8_t position_of(const TensorCoreInstruction& instruction, int i, int stored) {
  const SparseGroup group = sparse_group(instruction);
  const int index = i + stored / group.stored;
  if (group.positions == 2) return static_cast<std::uint8_t>(index % 2);
  static constexpr std::array<std::array<std::uint8_t, 2>, 6> pairs = {
      {{0, 1}, {0, 2}, {0, 3}, {1, 2}, {1, 3}, {2, 3}}};
  const int chunk = group.stored / 2;
  return pairs[static_cast<std::size_t>(index % 6)]
              [static_cast<std::size_t>(stored % group.stored / chunk)];
}

}  // namespace

HypothesisTest& HypothesisTest::trial(std::uint64_t c) {
  trials_.push_back({{}, c});
  return *this;
}

HypothesisTest& HypothesisTest::trial_value(long double c) {
  return trial(exact_word(instruction.c, c, instruction.name));
}

HypothesisTest& HypothesisTest::term(int k, long double a, long double b) {
  return codes(k, exact_word(instruction.a, a, instruction.name),
               exact_word(instruction.b, b, instruction.name));
}

HypothesisTest& HypothesisTest::codes(int k, std::uint64_t a, std::uint64_t b) {
  if (k >= instruction.stored_k())
    throw formats::Error(std::string(instruction.name), "k is not below the stored K");
  trials_.back().terms.push_back({k, a, b});
  return *this;
}

HypothesisTest& HypothesisTest::fill(long double a, long double b) {
  for (int k = 0; k < instruction.stored_k(); ++k)
    if (std::ranges::none_of(trials_.back().terms, [k](const Term& t) { return t.k == k; }))
      term(k, a, b);
  return *this;
}

HypothesisTest& HypothesisTest::power(int k, int exponent, bool negative) {
  const auto holds = [](const Format& f, int e) {
    return value_of(f, word_of(f, two(e))) == two(e);
  };
  int half = exponent / 2;
  while (!holds(instruction.b, exponent - half) && holds(instruction.a, half - 1)) --half;
  return term(k, negative ? -two(half) : two(half), two(exponent - half));
}

void HypothesisTest::add_hypothesis(std::string meaning, std::vector<std::uint64_t> words,
                                    std::optional<emulator::MatrixInstruction> model) {
  if (words.size() != trials_.size())
    throw formats::Error(std::string(instruction.name),
                         "hypothesis '" + meaning + "' does not predict every trial");
  hypotheses_.push_back({std::move(meaning), std::move(words), std::move(model)});
}

std::uint64_t HypothesisTest::d(long double value) const {
  return exact_word(instruction.d, value, instruction.name);
}

emulator::MatrixInstruction HypothesisTest::with_steps(const emulator::Steps& steps) const {
  emulator::MatrixInstruction changed = assumed;
  changed.steps = steps;
  return changed;
}

void HypothesisTest::keep_together(int neighbours, bool ordered) {
  neighbours_ = neighbours;
  ordered_ = ordered;
  step_ = std::max(instruction.stored_k() / 8, 1);
  while (step_ % neighbours != 0) ++step_;
}

int HypothesisTest::placements() const {
  return step_ == 0
             ? 1
             : std::max(
                   1, std::min({8, instruction.m, instruction.n, instruction.stored_k() / step_}));
}

int HypothesisTest::placed_k(int k, int placement) const {
  if (step_ == 0) return k;
  const bool reversed = !ordered_ && placement % 2 != 0 && k < neighbours_;
  return ((reversed ? neighbours_ - 1 - k : k) + placement * step_) % instruction.stored_k();
}

Batch batch_of(const HypothesisTest& test) {
  const TensorCoreInstruction& instruction = test.instruction;
  const auto& trials = test.trials();
  Batch batch(instruction, static_cast<int>(trials.size()));
  for (int t = 0; t < batch.executions; ++t) {
    const Trial& trial = trials[static_cast<std::size_t>(t)];
    const auto at = [t](int rows, int columns, int i, int j) {
      return element_index(rows, columns, t, i, j);
    };
    for (int i = 0; instruction.sparse && i < instruction.m; ++i)
      for (int s = 0; s < instruction.stored_k(); ++s)
        batch.e[at(instruction.m, instruction.stored_k(), i, s)] = position_of(instruction, i, s);
    for (int r = 0; r < test.placements(); ++r) {
      for (const Term& term : trial.terms) {
        const int stored = test.placed_k(term.k, r);
        const int k = instruction.sparse
                          ? dense_column(instruction, stored, position_of(instruction, r, stored))
                          : stored;
        batch.a[at(instruction.m, instruction.stored_k(), r, stored)] = term.a;
        batch.b[at(instruction.k, instruction.n, k, r)] = term.b;
      }
    }
    for (int i = 0; i < instruction.m; ++i)
      for (int j = 0; j < instruction.n; ++j)
        batch.c[at(instruction.m, instruction.n, i, j)] = trial.c;
  }
  return batch;
}

Observation observe(const HypothesisTest& test, const Batch& batch) {
  const TensorCoreInstruction& instruction = test.instruction;
  Observation observation;
  for (int t = 0; t < batch.executions; ++t) {
    const std::uint64_t first = batch.d[element_index(instruction.m, instruction.n, t, 0, 0)];
    observation.words.push_back(first);
    for (int r = 1; r < test.placements(); ++r)
      observation.same_everywhere &=
          batch.d[element_index(instruction.m, instruction.n, t, r, r)] == first;
  }
  return observation;
}

const Hypothesis* supported_hypothesis(const HypothesisTest& test, const Observation& observation) {
  if (!observation.same_everywhere) return nullptr;
  for (const Hypothesis& hypothesis : test.hypotheses())
    if (hypothesis.words == observation.words) return &hypothesis;
  return nullptr;
}

}  // namespace guardbit::gpu
