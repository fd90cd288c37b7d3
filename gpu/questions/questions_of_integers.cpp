// Questions about integer instructions: where a sum saturates, and what becomes of a sum out of
// range without saturation.

#include <algorithm>
#include <string>

#include "emulator/catalogue/compositions.hpp"
#include "formats/format_catalogue.hpp"
#include "gpu/questions/questions.hpp"

namespace guardbit::gpu {

namespace {

using emulator::AccumulatorSpec;
using emulator::Selection;
using emulator::Source;

constexpr std::int64_t highest = 0x7FFFFFFF, lowest = -highest - 1;

bool saturates(const TensorCoreInstruction& instruction) {
  return instruction.name.find("satfinite") != std::string_view::npos;
}

/// The sign of the product at each k: +1, -1 or 0.
using Signs = std::vector<int>;

/// Patterns whose signs add up to zero over K but not over parts of it: alternating runs of every
/// power of two, and one pair at the ends. Empty where both operands are unsigned.
std::vector<Signs> sign_patterns(const TensorCoreInstruction& instruction) {
  const int k = instruction.stored_k();
  std::vector<Signs> patterns;
  if (!instruction.a.has_sign && !instruction.b.has_sign) return patterns;
  for (const int first : {1, -1}) {
    for (int run = 1; run < k; run *= 2) {
      Signs signs(static_cast<std::size_t>(k));
      for (int i = 0; i < k; ++i)
        signs[static_cast<std::size_t>(i)] = i / run % 2 == 0 ? first : -first;
      patterns.push_back(signs);
    }
    Signs ends(static_cast<std::size_t>(k));
    ends.front() = first, ends.back() = -first;
    patterns.push_back(ends);
  }
  return patterns;
}

std::int64_t top_of(const Format& f) {
  return f.has_sign ? (1 << (bits(f) - 1)) - 1 : (1 << bits(f)) - 1;
}

/// The sum of an instruction that adds each piece of K exactly and saturates the running total
/// after every piece. `piece(k)` is the number of k's piece, from 0.
template <class Piece>
std::uint64_t in_pieces(const Signs& signs, std::int64_t product, std::int64_t c, int pieces,
                        Piece piece) {
  std::int64_t total = c;
  for (int p = 0; p < pieces; ++p) {
    for (std::size_t k = 0; k < signs.size(); ++k)
      if (piece(static_cast<int>(k)) == p) total += signs[k] * product;
    total = std::clamp(total, lowest, highest);
  }
  return static_cast<std::uint32_t>(total);
}

void design_saturation(HypothesisTest& x) {
  const TensorCoreInstruction& instruction = x.instruction;
  const int k = instruction.stored_k();
  const std::int64_t a = top_of(instruction.a), b = top_of(instruction.b), product = a * b;
  struct SignedTrial {
    Signs signs;
    std::int64_t c;
  };
  std::vector<SignedTrial> signed_trials;
  for (const std::int64_t c : {highest, lowest})
    for (const Signs& signs : sign_patterns(instruction)) signed_trials.push_back({signs, c});
  signed_trials.push_back({Signs(static_cast<std::size_t>(k), 1), highest});
  signed_trials.push_back({Signs(static_cast<std::size_t>(k), 1), highest - 1});
  for (const auto& [signs, c] : signed_trials) {
    x.trial_value(static_cast<long double>(c));
    for (int i = 0; i < k; ++i) {
      const int sign = signs[static_cast<std::size_t>(i)];
      const auto signed_a = static_cast<long double>(instruction.a.has_sign ? sign * a : a),
                 signed_b = static_cast<long double>(instruction.a.has_sign ? b : sign * b);
      if (sign != 0) x.term(i, signed_a, signed_b);
    }
  }
  const auto words = [&](int pieces, auto piece) {
    std::vector<std::uint64_t> list;
    for (const auto& [signs, c] : signed_trials)
      list.push_back(in_pieces(signs, product, c, pieces, piece));
    return list;
  };
  const auto blocks_of = [](int terms) {
    return [terms](AccumulatorSpec& spec) { spec.terms = terms; };
  };
  x.add_hypothesis("once: the exact total with C", words(1, [](int) { return 0; }),
                   x.with_spec(blocks_of(0)));
  std::vector<std::uint64_t> wrapped;
  for (const auto& [signs, c] : signed_trials) {
    std::int64_t total = c;
    for (const int sign : signs) total += sign * product;
    wrapped.push_back(static_cast<std::uint32_t>(total));
  }
  x.add_hypothesis("never: the total wraps", wrapped, x.with_spec([](AccumulatorSpec& spec) {
    spec.integer_overflow = emulator::IntegerOverflow::wrap;
  }));
  if (sign_patterns(instruction).empty()) return;  // sums of one sign saturate alike in every order
  x.add_hypothesis("after every product", words(k, [](int i) { return i; }),
                   x.with_spec(blocks_of(1)));
  x.add_hypothesis("after each half of K", words(2, [k](int i) { return i / (k / 2); }),
                   x.with_spec(blocks_of(k / 2)));
  for (int run = 1; run <= 8 && 2 * run < k; run *= 2) {
    const AccumulatorSpec spec = x.assumed.steps.list[0].spec;
    const std::uint32_t residues = (1U << run) - 1;
    x.add_hypothesis("in two steps: k % " + std::to_string(2 * run) + " < " + std::to_string(run) +
                         ", then the rest",
                     words(2, [run](int i) { return i / run % 2; }),
                     x.with_steps({emulator::dot_step(spec, Selection{2 * run, residues}, Source::c,
                                                      instruction.d),
                                   emulator::dot_step(spec, Selection{2 * run, residues << run},
                                                      Source::step_0, instruction.d)}));
  }
}

void design_wrapping(HypothesisTest& x) {
  const bool exclusive = x.instruction.name.find("xor") != std::string_view::npos;
  x.trial_value(highest).codes(0, 1, exclusive ? 0 : 1);
  x.trial_value(highest).codes(0, 1, exclusive ? 0 : 1).codes(1, 1, exclusive ? 0 : 1);
  x.keep_together(2);
  x.add_hypothesis("wraps", {0x80000000, 0x80000001});
  x.add_hypothesis("saturates", {0x7FFFFFFF, 0x7FFFFFFF}, x.with_spec([](AccumulatorSpec& spec) {
    spec.integer_overflow = emulator::IntegerOverflow::saturate;
  }));
}

}  // namespace

std::vector<Question> questions_of_integers() {
  return {{"Q16", ".satfinite on integers: where does the sum saturate?",
           [](const TensorCoreInstruction& instruction) {
             return is_plain(instruction) && is_integer(instruction.a) && saturates(instruction);
           },
           design_saturation},
          {"Q16b", "Integers without .satfinite: what does a sum past 2^31 do?",
           [](const TensorCoreInstruction& instruction) {
             return is_plain(instruction) && is_integer(instruction.a) && !saturates(instruction);
           },
           design_wrapping}};
}

}  // namespace guardbit::gpu
