#pragma once

// Hypothesis tests: an open question about one instruction becomes hand-made executions, and each
// hypothesis predicts the words of D. A device or a model executes them; the hypothesis that
// predicted every word is supported, the others are rejected, and without one the question is
// undecided. questions_of_*.cpp write the tests; question_results.hpp runs them.
//
// Words used here and in question_results.hpp:
//   trial        one execution of the instruction: an addend and some products
//   hypothesis   a rule that the hardware may follow, and the words that it predicts
//   observation  the words that came back
//   supported, rejected, undecided   what an observation says about the hypotheses

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "emulator/model/instruction.hpp"
#include "gpu/operands/register_words.hpp"
#include "gpu/operands/tensor_core_batch.hpp"

namespace guardbit::gpu {

/// The words of A and B at position `k` of K; of a sparse instruction, of the stored values.
struct Term {
  int k;
  std::uint64_t a, b;
  friend bool operator==(const Term&, const Term&) = default;
};

/// One execution: the word of C and some products. Every other operand is +0.
struct Trial {
  std::vector<Term> terms;
  std::uint64_t c = 0;
};

struct Hypothesis {
  std::string meaning;
  /// predicted words of D, one for each trial
  std::vector<std::uint64_t> words;
  /// The instruction that computes so; empty where the model has no such arithmetic.
  std::optional<emulator::MatrixInstruction> model;
};

/// 2^exponent.
inline long double two(int exponent) { return std::ldexp(1.0L, exponent); }

/// The trials and hypotheses of one question about one instruction. Functions that take numbers
/// throw formats::Error when the operand's format cannot hold them exactly, or when k is not below
/// the stored K.
class HypothesisTest {
 public:
  /// Keeps references: both must outlive the test.
  HypothesisTest(const TensorCoreInstruction& tested, const emulator::MatrixInstruction& model)
      : instruction(tested), assumed(model) {}

  const TensorCoreInstruction& instruction;
  /// the model in the catalogue
  const emulator::MatrixInstruction& assumed;

  /// Starts a trial whose addend is that word, or that number.
  HypothesisTest& trial(std::uint64_t c = 0);
  HypothesisTest& trial_value(long double c);
  /// Adds the product of two numbers, or of two words, to the last trial.
  HypothesisTest& term(int k, long double a, long double b);
  HypothesisTest& codes(int k, std::uint64_t a, std::uint64_t b);
  /// Adds the same product at every k that the last trial leaves free.
  HypothesisTest& fill(long double a, long double b);
  /// Adds the product 2^exponent, or its negative; A and B share the exponent.
  HypothesisTest& power(int k, int exponent, bool negative = false);

  /// `words` has one entry for each trial; else formats::Error.
  void add_hypothesis(std::string meaning, std::vector<std::uint64_t> words,
                      std::optional<emulator::MatrixInstruction> model = {});
  /// The word of D with that value.
  std::uint64_t d(long double value) const;
  /// The assumed model with every accumulation changed by `change`.
  template <class Change>
  emulator::MatrixInstruction with_spec(Change change) const {
    emulator::MatrixInstruction changed = assumed;
    for (int i = 0; i < changed.steps.count; ++i) {
      emulator::Step& step = changed.steps.list.at(static_cast<std::size_t>(i));
      if (step.operation == emulator::Operation::dot) change(step.spec);
    }
    return changed;
  }
  /// The assumed model with other steps.
  emulator::MatrixInstruction with_steps(const emulator::Steps& steps) const;

  /// Repeats the trials with their terms moved along k. The first `neighbours` positions stay
  /// adjacent, in either order unless `ordered`. Without this call terms stay where they are.
  void keep_together(int neighbours, bool ordered = false);

  const std::vector<Trial>& trials() const { return trials_; }
  const std::vector<Hypothesis>& hypotheses() const { return hypotheses_; }
  /// The number of copies of each trial; each stands in another row and column of D.
  int placements() const;
  int placed_k(int k, int placement) const;

 private:
  std::vector<Trial> trials_;
  std::vector<Hypothesis> hypotheses_;
  int neighbours_ = 0, step_ = 0;
  bool ordered_ = true;
};

/// The operands of all trials, one execution each. Placement r is in row r and column r of D.
Batch batch_of(const HypothesisTest& test);

/// What an executed batch shows.
struct Observation {
  /// of D, one for each trial, at the first placement
  std::vector<std::uint64_t> words;
  /// all placements agree
  bool same_everywhere = true;
  friend bool operator==(const Observation&, const Observation&) = default;
};
Observation observe(const HypothesisTest& test, const Batch& batch);

/// The hypothesis that predicted every word; null when none did or the placements disagree.
const Hypothesis* supported_hypothesis(const HypothesisTest& test, const Observation& observation);

/// The inputs as numbers, first what all trials share, then what varies:
/// "c = 1, p0 = 2^-11*1; p1 = 2^-10*2^-10 | 2^-10*2^-11".
std::string describe_inputs(const HypothesisTest& test);

/// A trial as words: "c=3f800000 0:3c00*3c00 1..3:…".
std::string describe_codes(const TensorCoreInstruction& instruction, const Trial& trial);

/// A word in as many hexadecimal digits as its format has.
std::string hexadecimal(const Format& format, std::uint64_t word);

}  // namespace guardbit::gpu
