#include "emulator/probe/probe.hpp"

#include <algorithm>
#include <array>
#include <random>
#include <utility>

#include "emulator/explain/explain.hpp"
#include "emulator/probe/answers.hpp"
#include "emulator/probe/distinguishing.hpp"
#include "emulator/probe/fit.hpp"
#include "emulator/probe/narrowing.hpp"
#include "emulator/probe/operand_codes.hpp"
#include "emulator/probe/structures.hpp"
#include "emulator/probe/tree_arithmetic.hpp"
#include "formats/support/error.hpp"

namespace guardbit::emulator {

namespace {

constexpr std::array<std::size_t, topics.size()> first_counts = {400, 400, 300, 100};
/// Held-out questions of each topic that confirm an arithmetic.
constexpr std::size_t confirmation_count = 1000;
/// Counterexamples of each topic that join the training answers, at most. They go to the last
/// topic, which counts for every field.
constexpr std::size_t most_counterexamples = 80;
constexpr int most_refinements = 5;
constexpr int most_distinguishing_rounds = 16;

void check(const BlackBox& box) {
  if (box.k < 1 || box.k > most_leaves) {
    throw formats::Error(
        "probe", "K is " + std::to_string(box.k) + ", not 1 to " + std::to_string(most_leaves));
  }
  const bool integers = formats::is_integer(box.a) && formats::is_integer(box.b) &&
                        formats::is_integer(box.c) && formats::is_integer(box.d);
  const auto floats = [](const Format& f) {
    return f.encoding == formats::Encoding::floating && f.has_sign;
  };
  if (!integers && !(floats(box.a) && floats(box.b) && floats(box.c) && floats(box.d)))
    throw formats::Error("probe",
                         "A, B, C and D must all be integers or all signed floating formats");
}

/// Checks that 1 * 1 at each k, and an addend of 1 alone, give 1. A unit that fails here does not
/// compute D = A * B + C.
void check_ones(const BlackBox& box) {
  std::vector<Question> list;
  for (int i = 0; i <= box.k; ++i) {
    Question q = zero_question(box);
    if (i < box.k) {
      q.a[static_cast<std::size_t>(i)] = number_code(box.a, false, 0);
      q.b[static_cast<std::size_t>(i)] = number_code(box.b, false, 0);
    } else if (box.has_addend) {
      q.c = number_code(box.c, false, 0);
    }
    list.push_back(std::move(q));
  }
  const bool bits = formats::bits(box.a) == 1;  // an XOR of ones is 0
  const Answers answers = ask(box, std::move(list));
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const bool addend = static_cast<int>(i) == box.k;
    if ((bits && !addend) || (addend && !box.has_addend)) continue;
    if (answers[i].d == number_code(box.d, false, 0)) continue;
    throw formats::Error("probe", std::string(addend ? "an addend of 1 and no product" : "1 * 1") +
                                      (addend ? "" : " at k = " + std::to_string(i)) + " gives " +
                                      value_text(box.d, answers[i].d) +
                                      ", not 1: this is not D = A * B + C");
  }
}

/// Checks that equal questions get equal answers. A unit that depends on more than its operands
/// (order of threads, random rounding, unwritten memory) cannot be probed.
void check_repeats(const BlackBox& box, std::mt19937_64& random) {
  constexpr std::size_t count = 100;
  std::vector<Question> list = questions(box, Topic::grid, count, random);
  const Answers first = ask(box, list);
  const Answers second = ask(box, std::move(list));
  for (std::size_t i = 0; i < first.size(); ++i) {
    if (first[i].d == second[i].d) continue;
    throw formats::Error("probe", "the unit answers the same question with " +
                                      value_text(box.d, first[i].d) + " and then with " +
                                      value_text(box.d, second[i].d) +
                                      ": it is no function of its operands");
  }
}

/// The state of a probe.
struct Search {
  std::vector<MatrixInstruction> structures;
  /// answers that fields are fitted to
  AnswersByTopic training;
  /// answers that no fit uses, which confirm it
  AnswersByTopic held_out;
  Fitted fitted;
  /// other structures that also give every answer
  std::vector<MatrixInstruction> equivalents;

  bool plausible() const {
    return !structures.empty() && fitted.mismatches <= training[0].size() / 4;
  }
  /// Every answer in one list.
  Answers answers() const {
    Answers all;
    for (const AnswersByTopic* p : {&training, &held_out})
      for (const Answers& answers : *p) all.insert(all.end(), answers.begin(), answers.end());
    return all;
  }
};

/// Asks questions that distinguish the fitted arithmetic from alternatives, first in its fields,
/// then in its structure. True if an answer contradicts it.
bool ask_more(const BlackBox& box, Search& x, std::mt19937_64& random) {
  const MatrixInstruction& instruction = x.fitted.instruction;
  if (ask_distinguishing_questions(box, instruction,
                                   alternatives_of(instruction, x.training, x.held_out), x.training,
                                   x.held_out, random))
    return true;
  x.equivalents = equivalent_structures(instruction, x.structures, x.training, x.held_out);
  if (x.equivalents.empty()) return false;
  if (ask_distinguishing_questions(box, instruction, x.equivalents, x.training, x.held_out, random))
    return true;
  std::erase_if(x.equivalents, [&](const MatrixInstruction& other) {
    return mismatches(other, x.held_out, 1) != 0;
  });
  return false;
}

/// Asks, fits and confirms until no held-out answer contradicts the best fit.
void search(const BlackBox& box, Search& x, std::mt19937_64& random) {
  for (int refinement = 0; refinement < most_refinements; ++refinement) {
    const bool first = x.fitted.instruction.steps.count == 0;
    if (!x.structures.empty() && (first || mismatches(x.fitted.instruction, x.training, 1) != 0))
      x.fitted = best_fit(x.structures, x.training);
    for (int i = 0; x.plausible() && i < most_distinguishing_rounds; ++i) {
      if (!ask_more(box, x, random)) break;
      x.fitted = refit(x.fitted, x.structures, x.training);
    }
    std::array<std::size_t, topics.size()> counts{};
    counts.fill(confirmation_count);
    AnswersByTopic confirmation = ask_each_topic(box, counts, random);
    bool contradicted = false;
    for (std::size_t t = 0; t < topics.size(); ++t) {
      std::size_t kept = 0;
      for (Answered& answer : confirmation[t]) {
        const bool wrong = !x.structures.empty() && !reproduces(x.fitted.instruction, answer);
        contradicted = contradicted || wrong;
        (wrong && kept++ < most_counterexamples ? x.training.back() : x.held_out[t])
            .push_back(std::move(answer));
      }
    }
    if (!x.plausible() || !contradicted) break;
  }
}

/// Sets in every answer whether all NaNs count as equal, as the box says.
void take_nans_as(const BlackBox& box, Search& x) {
  for (AnswersByTopic* training : {&x.training, &x.held_out})
    for (Answers& answers : *training)
      for (Answered& answer : answers) answer.any_nan = box.nans_alike && is_nan(box.d, answer.d);
}

/// Looks for NaN policies that give the signs and payloads of all NaN answers. False if there are
/// none; the instruction is then unchanged. `box` must distinguish NaNs.
bool settle_nans(const BlackBox& box, Search& x, std::mt19937_64& random) {
  constexpr int most_rounds = 4;
  const MatrixInstruction before = x.fitted.instruction;
  take_nans_as(box, x);
  const auto wrong = [&](const MatrixInstruction& instruction) {
    return mismatches(instruction, x.training) + mismatches(instruction, x.held_out);
  };
  for (int round = 0; round < most_rounds; ++round) {
    fit_nan_policies(x.fitted.instruction, wrong);
    if (wrong(x.fitted.instruction) != 0) break;
    const std::vector<MatrixInstruction> open =
        alternatives_in(x.fitted.instruction, "nan", x.training, x.held_out);
    if (!ask_distinguishing_questions(box, x.fitted.instruction, open, x.training, x.held_out,
                                      random))
      return true;
  }
  x.fitted.instruction = before;
  return false;
}

/// Settles the NaNs of the fitted structure. If no policy gives them, tries the other structures
/// that give every other answer: signs and payloads of NaNs tell the structures apart. More
/// questions then settle the fields of the one that is left.
bool settle_nans_of_any(const BlackBox& box, Search& x, std::mt19937_64& random) {
  if (settle_nans(box, x, random)) return true;
  const Fitted first = x.fitted;
  for (const MatrixInstruction& other : std::vector<MatrixInstruction>(x.equivalents)) {
    x.fitted = {other, 0};
    if (!settle_nans(box, x, random)) continue;
    x.equivalents.clear();
    for (int i = 0; i < most_distinguishing_rounds && ask_more(box, x, random); ++i)
      x.fitted = refit(x.fitted, x.structures, x.training);
    return true;
  }
  x.fitted = first;
  return false;
}

ProbeReport report_of(const BlackBox& box, const TreeAnswer& tree, const Search& x) {
  ProbeReport report;
  report.a = box.a, report.b = box.b, report.c = box.c, report.d = box.d;
  report.tree = tree.tree;
  report.tree_observable = tree.observable;
  report.tree_note = tree.note;
  report.nans_alike = box.nans_alike;
  report.answers = x.answers();
  report.has_structure = !x.structures.empty();
  if (tree.observable) {
    if (const auto found = arithmetic_of_tree(box, tree.tree, x.training[0], report.answers)) {
      report.tree_arithmetic = text_of(*found, box.d);
      report.tree_mismatches = mismatches(box, tree.tree, *found, report.answers);
    }
  }
  report.mismatches = report.answers.size();
  if (report.has_structure) {
    report.instruction = x.fitted.instruction;
    report.mismatches = mismatches(x.fitted.instruction, report.answers);
    report.explained = report.mismatches == 0;
  }
  if (report.explained) {
    report.findings = findings_of(report.instruction, report.answers);
    if (box.nans_alike)
      std::erase_if(report.findings, [](const Finding& f) { return f.field.ends_with("nan"); });
    for (const MatrixInstruction& other : x.equivalents) {
      const std::string text = structure_text(other);
      const bool is_said =
          std::find(report.alike.begin(), report.alike.end(), text) != report.alike.end();
      if (!is_said && text != structure_text(report.instruction)) report.alike.push_back(text);
    }
  }
  if (box.k <= max_k) report.catalogue = catalogue_matches(box, report.answers);
  return report;
}

ProbeReport probe_as(const BlackBox& unit, std::uint64_t seed) {
  check_ones(unit);
  std::mt19937_64 random(seed);
  check_repeats(unit, random);
  const TreeAnswer tree = reveal_tree(unit);
  // The search ignores signs and payloads of NaNs at first.
  BlackBox box = unit;
  box.nans_alike = unit.nans_alike || !formats::is_integer(unit.d);
  Search x;
  if (box.k <= max_k) x.structures = structures_of(box, tree);
  x.training = ask_each_topic(box, first_counts, random);
  search(box, x, random);
  if (!unit.nans_alike && box.nans_alike && x.fitted.mismatches == 0) {
    box.nans_alike = false;
    box.nans_alike = !settle_nans_of_any(box, x, random);
    take_nans_as(box, x);
  }
  return report_of(box, tree, x);
}

}  // namespace

ProbeReport probe(const BlackBox& unit, std::uint64_t seed) {
  check(unit);
  ProbeReport report = probe_as(unit, seed);
  const auto is_found = [](const ProbeReport& r) {
    return r.explained || (!r.tree_arithmetic.empty() && r.tree_mismatches == 0);
  };
  if (is_found(report)) return report;
  for (const auto narrowing : {with_narrower_result, with_narrower_operands}) {
    const auto narrowed = narrowing(unit, report.answers);
    if (!narrowed) continue;
    ProbeReport again = probe_as(narrowed->box, seed);
    again.narrowed = narrowed->remark;
    return again;
  }
  return report;
}

}  // namespace guardbit::emulator
