#include "emulator/probe.hpp"

#include <algorithm>
#include <array>
#include <random>
#include <utility>

#include "emulator/explain.hpp"
#include "emulator/probe_answers.hpp"
#include "emulator/probe_findings.hpp"
#include "emulator/probe_fit.hpp"
#include "emulator/probe_structures.hpp"
#include "emulator/probe_telling.hpp"
#include "emulator/tree_arithmetic.hpp"
#include "formats/error.hpp"

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

/// How the two-way nodes of a tree add, when it gives every one of these answers.
std::string arithmetic_of_tree(const BlackBox& box, const TreeAnswer& tree, const Pool& answers) {
  if (!tree.observable) return {};
  for (const bool fused : {true, false}) {
    for (const Rounding rounding : {Rounding::nearest_even, Rounding::toward_zero, Rounding::upward,
                                    Rounding::downward, Rounding::nearest_away}) {
      const TreeArithmetic arithmetic{fused, rounding};
      const bool all = std::all_of(answers.begin(), answers.end(), [&](const Answered& x) {
        const auto d = evaluate(box, tree.tree, arithmetic, x.question);
        return d && plain_nan(box.d, *d) == plain_nan(box.d, x.d);
      });
      if (all) return text_of(arithmetic);
    }
  }
  return {};
}

/// Asks, fits and confirms, bit for bit.
ProbeReport probe_bits(const BlackBox& box, const TreeAnswer& tree, std::uint64_t seed,
                       bool nans_alike) {
  ProbeReport report;
  report.tree = tree.tree;
  report.tree_observable = tree.observable;
  report.tree_note = tree.note;
  const std::vector<MatrixInstruction> structures =
      box.k <= max_k ? structures_of(box, tree) : std::vector<MatrixInstruction>{};

  std::mt19937_64 random(seed);
  Pools pools = asked_of_each_topic(box, first_counts, random);
  Pools fresh;
  Fitted fitted;
  for (int refinement = 0; refinement < most_refinements; ++refinement) {
    if (!structures.empty()) fitted = best_fit(structures, pools);
    const bool plausible = !structures.empty() && fitted.mismatches <= pools[0].size() / 4;
    for (int i = 0; plausible && i < most_tellings; ++i) {
      if (!ask_what_tells(box, fitted.row, pools, fresh, random)) break;
      fitted = refit(fitted, structures, pools);
    }
    std::array<std::size_t, topics.size()> counts{};
    counts.fill(confirmation_count);
    Pools confirmation = asked_of_each_topic(box, counts, random);
    bool refuted = false;
    for (std::size_t t = 0; t < topics.size(); ++t) {
      std::size_t kept = 0;
      for (Answered& x : confirmation[t]) {
        const bool wrong = !structures.empty() && model(fitted.row, x.question) != x.d;
        refuted = refuted || wrong;
        (wrong && kept++ < refutations_kept ? pools.back() : fresh[t]).push_back(std::move(x));
      }
    }
    if (!plausible || !refuted) break;
  }
  report.tree_arithmetic = arithmetic_of_tree(box, tree, pools[0]);
  for (const Pools* p : {&pools, &fresh}) {
    for (const Pool& pool : *p) {
      report.answers.insert(report.answers.end(), pool.begin(), pool.end());
    }
  }
  if (!structures.empty()) {
    report.row = fitted.row;
    report.mismatches = mismatches(fitted.row, report.answers);
    report.explained = report.mismatches == 0;
  } else {
    report.mismatches = report.answers.size();
  }
  if (report.explained) {
    report.findings = findings_of(report.row, report.answers);
    report.alike = alike_structures(report.row, structures, report.answers);
  }
  if (box.k <= max_k) report.catalogue = catalogue_matches(box, report.answers, nans_alike);
  return report;
}

}  // namespace

ProbeReport probe(const BlackBox& box, std::uint64_t seed) {
  check(box);
  check_ones(box);
  const TreeAnswer tree = reveal_tree(box);
  ProbeReport report = probe_bits(box, tree, seed, false);
  if (report.explained || formats::is_integer(box.d)) return report;
  ProbeReport alike = probe_bits(with_plain_nans(box), tree, seed, true);
  if (!alike.explained && alike.catalogue.empty()) return report;
  alike.nans_alike = true;
  std::erase_if(alike.findings, [](const Finding& f) { return f.field.ends_with("nan"); });
  return alike;
}

}  // namespace guardbit::emulator
