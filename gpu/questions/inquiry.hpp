#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "emulator/model/instruction.hpp"
#include "gpu/operands/register_words.hpp"
#include "gpu/operands/tensor_core_batch.hpp"

namespace guardbit::gpu {

/// A pair of operands at place `k` (among the stored values of a sparse row).
struct Term {
  int k;
  std::uint64_t a, b;
  friend bool operator==(const Term&, const Term&) = default;
};

/// One execution: an addend and some products; everything else is +0.
struct Probe {
  std::vector<Term> terms;
  std::uint64_t c = 0;
};

/// What a device may answer to the probes of an inquiry, and what that would mean.
struct Outcome {
  std::string meaning;
  std::vector<std::uint64_t> words;  ///< of D, one for each probe
  /// The row as it would be if this were the answer; empty where no row can say it.
  std::optional<emulator::MatrixInstruction> hypothesis;
};

/// 2^exponent.
inline long double two(int exponent) { return std::ldexp(1.0L, exponent); }

/// One question put to one instruction: hand-made executions, and the answers that decide it.
class Inquiry {
 public:
  Inquiry(const TensorCoreInstruction& instruction, const emulator::MatrixInstruction& model)
      : row(instruction), believed(model) {}

  const TensorCoreInstruction& row;
  const emulator::MatrixInstruction& believed;  ///< the catalogue's row

  /// Starts a probe whose addend is that code, or that value.
  Inquiry& probe(std::uint64_t c = 0);
  Inquiry& probe_value(long double c);
  /// Adds a product to the last probe. formats::Error when the row cannot hold the values there.
  Inquiry& term(int k, long double a, long double b);
  Inquiry& codes(int k, std::uint64_t a, std::uint64_t b);
  /// The same product at every place that the last probe leaves free.
  Inquiry& fill(long double a, long double b);
  /// 2^exponent with either sign, its exponent shared out between A and B.
  Inquiry& power(int k, int exponent, bool negative = false);

  /// Adds an outcome; `words` has one entry for each probe.
  void outcome(std::string meaning, std::vector<std::uint64_t> words,
               std::optional<emulator::MatrixInstruction> hypothesis = {});
  /// The word of D with that value. formats::Error when there is none.
  std::uint64_t d(long double value) const;
  /// The catalogue's row with every accumulation changed by `change`.
  template <class Change>
  emulator::MatrixInstruction if_spec(Change change) const {
    emulator::MatrixInstruction changed = believed;
    for (int i = 0; i < changed.steps.count; ++i) {
      emulator::Step& step = changed.steps.list.at(static_cast<std::size_t>(i));
      if (step.operation == emulator::Operation::dot) change(step.spec);
    }
    return changed;
  }
  /// The catalogue's row with other steps.
  emulator::MatrixInstruction if_steps(const emulator::Steps& steps) const;

  /// Probes are repeated with their terms moved along k, `neighbours` adjacent places staying
  /// together (in either order, unless `ordered`). Without this, terms stay where they are.
  void keep_together(int neighbours, bool ordered = false);

  const std::vector<Probe>& probes() const { return probes_; }
  const std::vector<Outcome>& outcomes() const { return outcomes_; }
  /// How often the probes are placed, each time in another row and column of the tile.
  int placements() const;
  int placed_k(int k, int placement) const;

 private:
  std::vector<Probe> probes_;
  std::vector<Outcome> outcomes_;
  int neighbours_ = 0, step_ = 0;
  bool ordered_ = true;
};

/// The probes as executions: placement r lies in row r and column r of each tile.
Batch pose(const Inquiry& inquiry);

/// What came back: the words of D.
struct Answer {
  std::vector<std::uint64_t> words;  ///< one for each probe, of the first placement
  bool same_everywhere = true;       ///< all placements agree
  friend bool operator==(const Answer&, const Answer&) = default;
};
Answer read_answer(const Inquiry& inquiry, const Batch& batch);

/// The outcome that the answer is; null when it is none of them.
const Outcome* conclude(const Inquiry& inquiry, const Answer& answer);

/// "c = 1, p0 = 2^-11*1; p1 = 2^-10*2^-10 | 2^-10*2^-11": what all probes share, then what varies.
std::string describe_inputs(const Inquiry& inquiry);

/// "c=3f800000 0:3c00*3c00 1..3:…": a probe as codes.
std::string describe_codes(const TensorCoreInstruction& row, const Probe& probe);

/// A word in as many hexadecimal digits as its format has.
std::string hexadecimal(const Format& format, std::uint64_t word);

}  // namespace guardbit::gpu
