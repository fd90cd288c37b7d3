#include "emulator/probe/probe.hpp"

#include <algorithm>
#include <array>
#include <random>
#include <utility>

#include "emulator/explain/explain.hpp"
#include "emulator/probe/answers.hpp"
#include "emulator/probe/findings.hpp"
#include "emulator/probe/fit.hpp"
#include "emulator/probe/structures.hpp"
#include "emulator/probe/telling.hpp"
#include "emulator/probe/tree_arithmetic.hpp"
#include "formats/support/error.hpp"

namespace guardbit::emulator {

namespace {

constexpr std::array<std::size_t, topics.size()> first_counts = {400, 400, 300, 100};
/// Fresh questions that the surviving arithmetic must answer, of each topic.
constexpr std::size_t confirmation_count = 1000;
/// Answers that refuted an arithmetic and join those it is fitted to, at most, of each topic. They
/// go to the last pool, on which every field is judged.
constexpr std::size_t refutations_kept = 80;
constexpr int most_refinements = 5;
constexpr int most_tellings = 16;

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

/// Each product of ones, and the addend alone, must come back: a unit that fails here is not
/// D = A * B + C, and everything after would mislead.
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
  const Pool answers = asked(box, std::move(list));
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

/// What depends on anything but its operands has no arithmetic to be found: threads that race for
/// the order of their sums, random rounding, memory that was not written.
void check_repeats(const BlackBox& box, std::mt19937_64& random) {
  constexpr std::size_t count = 100;
  std::vector<Question> list = questions(box, Topic::grid, count, random);
  const Pool first = asked(box, list);
  const Pool second = asked(box, std::move(list));
  for (std::size_t i = 0; i < first.size(); ++i) {
    if (first[i].d == second[i].d) continue;
    throw formats::Error("probe", "the unit answers the same question with " +
                                      value_text(box.d, first[i].d) + " and then with " +
                                      value_text(box.d, second[i].d) +
                                      ": it is no function of its operands");
  }
}

/// A probe under way.
struct Inquiry {
  std::vector<MatrixInstruction> structures;
  Pools pools;  ///< answers that fields are fitted to
  Pools fresh;  ///< answers that confirmed what was fitted
  Fitted fitted;
  std::vector<MatrixInstruction> rivals;  ///< other structures that give every answer

  bool plausible() const { return !structures.empty() && fitted.mismatches <= pools[0].size() / 4; }
  /// Every answer in one list.
  Pool answers() const {
    Pool all;
    for (const Pools* p : {&pools, &fresh})
      for (const Pool& pool : *p) all.insert(all.end(), pool.begin(), pool.end());
    return all;
  }
};

/// Fields first: another structure is fitted to what they leave open.
bool ask_more(const BlackBox& box, Inquiry& x, std::mt19937_64& random) {
  const MatrixInstruction& row = x.fitted.row;
  if (ask_what_tells(box, row, alternatives_of(row, x.pools, x.fresh), x.pools, x.fresh, random))
    return true;
  x.rivals = rivals_of(row, x.structures, x.pools, x.fresh);
  if (x.rivals.empty()) return false;
  if (ask_what_tells(box, row, x.rivals, x.pools, x.fresh, random)) return true;
  std::erase_if(x.rivals,
                [&](const MatrixInstruction& other) { return mismatches(other, x.fresh, 1) != 0; });
  return false;
}

/// Asks, fits and confirms until what fits best is refuted no more.
void inquire(const BlackBox& box, Inquiry& x, std::mt19937_64& random) {
  for (int refinement = 0; refinement < most_refinements; ++refinement) {
    const bool first = x.fitted.row.steps.count == 0;
    if (!x.structures.empty() && (first || mismatches(x.fitted.row, x.pools, 1) != 0))
      x.fitted = best_fit(x.structures, x.pools);
    for (int i = 0; x.plausible() && i < most_tellings; ++i) {
      if (!ask_more(box, x, random)) break;
      x.fitted = refit(x.fitted, x.structures, x.pools);
    }
    std::array<std::size_t, topics.size()> counts{};
    counts.fill(confirmation_count);
    Pools confirmation = asked_of_each_topic(box, counts, random);
    bool refuted = false;
    for (std::size_t t = 0; t < topics.size(); ++t) {
      std::size_t kept = 0;
      for (Answered& answer : confirmation[t]) {
        const bool wrong = !x.structures.empty() && !gives(x.fitted.row, answer);
        refuted = refuted || wrong;
        (wrong && kept++ < refutations_kept ? x.pools.back() : x.fresh[t])
            .push_back(std::move(answer));
      }
    }
    if (!x.plausible() || !refuted) break;
  }
}

/// Whether answers that are NaN stand for every NaN.
void take_nans_as(const BlackBox& box, Inquiry& x) {
  for (Pools* pools : {&x.pools, &x.fresh})
    for (Pool& pool : *pools)
      for (Answered& answer : pool) answer.any_nan = box.nans_alike && is_nan(box.d, answer.d);
}

/// Tries to give the signs and payloads of NaNs, too, which many units have of their own; false,
/// and everything as it was, where no policy does. `box` tells NaNs apart.
bool settle_nans(const BlackBox& box, Inquiry& x, std::mt19937_64& random) {
  constexpr int most_rounds = 4;
  const MatrixInstruction before = x.fitted.row;
  take_nans_as(box, x);
  const auto wrong = [&](const MatrixInstruction& row) {
    return mismatches(row, x.pools) + mismatches(row, x.fresh);
  };
  for (int round = 0; round < most_rounds; ++round) {
    fit_nan_policies(x.fitted.row, wrong);
    if (wrong(x.fitted.row) != 0) break;
    const std::vector<MatrixInstruction> open =
        alternatives_in(x.fitted.row, "nan", x.pools, x.fresh);
    if (!ask_what_tells(box, x.fitted.row, open, x.pools, x.fresh, random)) return true;
  }
  x.fitted.row = before;
  return false;
}

ProbeReport report_of(const BlackBox& box, const TreeAnswer& tree, const Inquiry& x) {
  ProbeReport report;
  report.tree = tree.tree;
  report.tree_observable = tree.observable;
  report.tree_note = tree.note;
  report.nans_alike = box.nans_alike;
  report.answers = x.answers();
  report.has_structure = !x.structures.empty();
  if (tree.observable) {
    if (const auto found = arithmetic_of_tree(box, tree.tree, x.pools[0], report.answers)) {
      report.tree_arithmetic = text_of(*found, box.d);
      report.tree_mismatches = mismatches(box, tree.tree, *found, report.answers);
    }
  }
  report.mismatches = report.answers.size();
  if (report.has_structure) {
    report.row = x.fitted.row;
    report.mismatches = mismatches(x.fitted.row, report.answers);
    report.explained = report.mismatches == 0;
  }
  if (report.explained) {
    report.findings = findings_of(report.row, report.answers);
    if (box.nans_alike)
      std::erase_if(report.findings, [](const Finding& f) { return f.field.ends_with("nan"); });
    for (const MatrixInstruction& other : x.rivals) report.alike.push_back(structure_text(other));
  }
  if (box.k <= max_k) report.catalogue = catalogue_matches(box, report.answers);
  return report;
}

}  // namespace

ProbeReport probe(const BlackBox& unit, std::uint64_t seed) {
  check(unit);
  check_ones(unit);
  std::mt19937_64 random(seed);
  check_repeats(unit, random);
  const TreeAnswer tree = reveal_tree(unit);
  // First without the signs and payloads of NaNs.
  BlackBox box = unit;
  box.nans_alike = unit.nans_alike || !formats::is_integer(unit.d);
  Inquiry x;
  if (box.k <= max_k) x.structures = structures_of(box, tree);
  x.pools = asked_of_each_topic(box, first_counts, random);
  inquire(box, x, random);
  if (!unit.nans_alike && box.nans_alike && x.fitted.mismatches == 0) {
    box.nans_alike = false;
    box.nans_alike = !settle_nans(box, x, random);
    take_nans_as(box, x);
  }
  return report_of(box, tree, x);
}

}  // namespace guardbit::emulator
