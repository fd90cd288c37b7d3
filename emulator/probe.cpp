#include "emulator/probe.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <random>
#include <utility>

#include "emulator/catalogue.hpp"
#include "emulator/dot.hpp"
#include "emulator/explain.hpp"
#include "emulator/probe_fields.hpp"
#include "emulator/probe_questions.hpp"
#include "emulator/probe_structures.hpp"
#include "emulator/tree_arithmetic.hpp"
#include "formats/error.hpp"

namespace guardbit::emulator {

namespace {

constexpr std::array topics = {Topic::grid, Topic::tiny, Topic::specials, Topic::raw};
constexpr std::array<std::size_t, topics.size()> first_counts = {400, 400, 300, 100};
/// Fresh questions that the surviving arithmetic must answer, of each topic.
constexpr std::size_t confirmation_count = 1000;
/// Answers that refuted an arithmetic and join those it is fitted to, at most, of each topic. They
/// go to the last pool, on which every field is judged.
constexpr std::size_t refutations_kept = 80;
constexpr int most_refinements = 5;
/// Questions that are looked through, of each topic, for one that tells two values of a field
/// apart, and how many of those are asked.
constexpr std::size_t sifted_count = 6000;
constexpr std::size_t telling_count = 3;

using Pool = std::vector<Answered>;
using Pools = std::array<Pool, topics.size()>;

std::uint64_t model(const MatrixInstruction& row, const Question& q) {
  const DotOperands operands{q.a, q.b, q.c, q.a_scale, q.b_scale};
  if (q.a.size() <= 16) return dot<16>(row, operands);
  if (q.a.size() <= 64) return dot<64>(row, operands);
  return dot<max_k>(row, operands);
}

std::size_t mismatches(const MatrixInstruction& row, const Pool& pool,
                       std::size_t limit = std::numeric_limits<std::size_t>::max()) {
  std::size_t count = 0;
  for (const Answered& x : pool) {
    if (model(row, x.question) != x.d && ++count >= limit) break;
  }
  return count;
}

/// Of the answers that decide about a field: its topic's, and those that refuted earlier fits.
std::size_t mismatches_for(const ProbedField& field, const MatrixInstruction& row,
                           const Pools& pools,
                           std::size_t limit = std::numeric_limits<std::size_t>::max()) {
  const std::size_t own = mismatches(row, pools[static_cast<std::size_t>(field.topic)], limit);
  return own >= limit ? own : own + mismatches(row, pools.back(), limit - own);
}

std::size_t mismatches(const MatrixInstruction& row, const Pools& pools) {
  std::size_t count = 0;
  for (const Pool& pool : pools) count += mismatches(row, pool);
  return count;
}

/// The two kinds of steps whose fields are looked for together: accumulations, and the additions
/// and conversions between them.
enum class Group { accumulations, scalars };
constexpr std::array groups = {Group::accumulations, Group::scalars};

bool belongs(const Step& step, Group group) {
  return (step.operation == Operation::dot) == (group == Group::accumulations);
}

const Step* first_of(const MatrixInstruction& row, Group group) {
  const auto found = std::find_if(row.steps.begin(), row.steps.end(),
                                  [&](const Step& step) { return belongs(step, group); });
  return found == row.steps.end() ? nullptr : found;
}

template <class Change>
void change_all(MatrixInstruction& row, Group group, Change change) {
  for (int i = 0; i < row.steps.count; ++i) {
    Step& step = row.steps.list[static_cast<std::size_t>(i)];
    if (belongs(step, group)) change(step);
  }
}

MatrixInstruction with_value(MatrixInstruction row, Group group, const ProbedField& field,
                             long value) {
  change_all(row, group, [&](Step& step) { field.set(step.spec, value); });
  return row;
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

/// The two cuts of a two-stage sum hide each other: one alone may look best at the other's place.
void fit_cuts_together(MatrixInstruction& row, const Pools& pools) {
  const Step* const step = first_of(row, Group::accumulations);
  if (step == nullptr || step->spec.summation != Summation::two_stage) return;
  const ProbedField& sum = field_named("sum_kept_fraction_bits");
  const ProbedField& total = field_named("total_kept_fraction_bits");
  const std::vector<long> sums = sum.values(row, *step);
  const std::vector<long> totals = total.values(row, *step);
  std::size_t best = mismatches_for(sum, row, pools);
  for (const long x : sums) {
    for (const long y : totals) {
      const MatrixInstruction both =
          with_value(with_value(row, Group::accumulations, sum, x), Group::accumulations, total, y);
      const std::size_t count = mismatches_for(sum, both, pools, best);
      if (count >= best) continue;
      best = count;
      row = both;
    }
  }
}

struct Fitted {
  MatrixInstruction row;
  std::size_t mismatches = std::numeric_limits<std::size_t>::max();
};

/// The structure and fields that explain most answers, the first such structure.
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
    if (mismatches(row, pools) != 0) {
      fit_cuts_together(row, pools);
      fit(row, pools, Topic::raw);
    }
    const std::size_t all = mismatches(row, pools);
    if (all < best.mismatches) best = {row, all};
    if (all == 0) break;
  }
  return best;
}

std::string ranges_text(const std::vector<long>& values, const ProbedField& field) {
  std::string text;
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::size_t last = i;
    const bool numbers = field.text(values[i]) == std::to_string(values[i]);
    while (numbers && last + 1 < values.size() && values[last + 1] == values[last] + 1) ++last;
    text += (text.empty() ? "" : ", ") + field.text(values[i]);
    if (last > i) text += ".." + field.text(values[last]);
    i = last;
  }
  return text;
}

/// Index of the first answer that the row does not give.
std::optional<std::size_t> refutation(const MatrixInstruction& row, const Pool& answers) {
  for (std::size_t i = 0; i < answers.size(); ++i) {
    if (model(row, answers[i].question) != answers[i].d) return i;
  }
  return {};
}

/// What every other value of a field would have answered.
template <class WithValue>
Finding finding_of(const ProbedField& field, const std::string& name, long now,
                   const std::vector<long>& values, const Pool& answers, WithValue with) {
  Finding f{name, field.text(now), {}, {}, {}, 0, 0};
  std::vector<long> alike;
  std::optional<long> nearest;
  for (const long value : values) {
    if (value == now) continue;
    const MatrixInstruction other = with(value);
    const auto refuted = refutation(other, answers);
    if (!refuted) {
      alike.push_back(value);
      continue;
    }
    if (nearest && std::abs(*nearest - now) <= std::abs(value - now)) continue;
    nearest = value;
    f.nearest_rejected = field.text(value);
    f.proof = *refuted;
    f.otherwise = model(other, answers[*refuted].question);
  }
  f.others = ranges_text(alike, field);
  if (!alike.empty()) {
    f.reason = "none of " + std::to_string(answers.size()) + " answers differs between them";
  }
  return f;
}

const ProbedField terms_field = {
    "terms",
    Topic::grid,
    [](const AccumulatorSpec& s) { return static_cast<long>(s.terms); },
    [](AccumulatorSpec& s, long v) { s.terms = static_cast<int>(v); },
    {},
    0,
    max_k,
    nullptr};

/// The number of products that an accumulation takes.
long product_count(const MatrixInstruction& row, const Step& step) {
  long count = 0;
  for (int i = 0; i < row.shape.k; ++i) count += step.selection.contains(i) ? 1 : 0;
  return count;
}

std::vector<Finding> findings_of(const MatrixInstruction& row, const Pool& answers) {
  std::vector<Finding> list;
  const Step* const dot = first_of(row, Group::accumulations);
  if (dot != nullptr && dot->spec.summation != Summation::fma_chain) {
    std::vector<long> lengths;
    const long most = product_count(row, *dot);
    const long now = dot->spec.terms == 0 ? most : dot->spec.terms;
    for (long i = 1; i <= most; ++i) {
      const bool power_of_two = (i & (i - 1)) == 0;
      if (power_of_two || i == most || std::abs(i - now) <= 1) lengths.push_back(i);
    }
    list.push_back(finding_of(terms_field, "terms", now, lengths, answers, [&](long value) {
      return with_value(row, Group::accumulations, terms_field, value);
    }));
  }
  for (const Group group : groups) {
    const Step* const step = first_of(row, group);
    if (step == nullptr) continue;
    for (const ProbedField& field : probed_fields()) {
      const std::vector<long> values = field.values(row, *step);
      if (values.size() < 2) continue;
      const std::string prefix = group == Group::scalars ? "addition." : "";
      list.push_back(finding_of(field, prefix + std::string(field.name), field.get(step->spec),
                                values, answers,
                                [&](long value) { return with_value(row, group, field, value); }));
    }
  }
  return list;
}

/// Other structures with the same fields that give every answer.
std::vector<std::string> alike_structures(const MatrixInstruction& row,
                                          const std::vector<MatrixInstruction>& structures,
                                          const Pool& answers) {
  std::vector<std::string> names;
  for (MatrixInstruction other : structures) {
    set_first_guess(other);
    for (const Group group : groups) {
      const Step* const from = first_of(row, group);
      if (from == nullptr) continue;
      change_all(other, group, [&](Step& step) {
        const Summation summation = step.spec.summation;
        const int terms = step.spec.terms;
        step.spec = from->spec;
        step.spec.summation = summation;
        step.spec.terms = terms;
      });
    }
    if (std::equal(other.steps.begin(), other.steps.end(), row.steps.begin(), row.steps.end()))
      continue;
    if (refutation(other, answers)) continue;
    const Step* const dot = first_of(other, Group::accumulations);
    names.push_back(std::string(dot == nullptr ? "" : summation_name(dot->spec.summation)) + ", " +
                    std::to_string(other.steps.count) +
                    (other.steps.count == 1 ? " step" : " steps") +
                    (dot != nullptr && dot->widened ? ", operands widened first" : ""));
  }
  return names;
}

/// A NaN without its sign and payload.
std::uint64_t plain_nan(const Format& f, std::uint64_t code) {
  return formats::decode(f, code).kind == formats::Kind::nan ? formats::all_ones_nan_code(f) : code;
}

/// The box with every NaN answer made the same.
BlackBox with_plain_nans(const BlackBox& box) {
  BlackBox plain = box;
  plain.answer = [answer = box.answer, d = box.d](std::span<const Question> list) {
    std::vector<std::uint64_t> codes = answer(list);
    for (std::uint64_t& code : codes) code = plain_nan(d, code);
    return codes;
  };
  return plain;
}

bool gives_all(const MatrixInstruction& row, const Pool& answers, bool nans_alike) {
  return std::all_of(answers.begin(), answers.end(), [&](const Answered& x) {
    const std::uint64_t d = model(row, x.question);
    return (nans_alike ? plain_nan(row.d, d) : d) == x.d;
  });
}

std::vector<CatalogueMatch> catalogue_matches(const BlackBox& box, const Pool& answers,
                                              bool nans_alike) {
  struct Class {
    const MatrixInstruction* row;
    bool fits;
    CatalogueMatch match;
  };
  std::vector<Class> classes;
  for (const MatrixInstruction& row : catalogue()) {
    const bool same_types = row.a == box.a && row.b == box.b && row.c == box.c && row.d == box.d &&
                            row.scale == box.scale;
    if (!same_types) continue;
    auto found = std::find_if(classes.begin(), classes.end(), [&](const Class& x) {
      return std::equal(row.steps.begin(), row.steps.end(), x.row->steps.begin(),
                        x.row->steps.end());
    });
    if (found == classes.end()) {
      const bool fits = gives_all(row, answers, nans_alike);
      found = classes.insert(classes.end(), {&row, fits, {}});
    }
    found->match.rows.push_back(&row);
  }
  std::vector<CatalogueMatch> matches;
  for (Class& x : classes) {
    if (x.fits) matches.push_back(std::move(x.match));
  }
  return matches;
}

Pool asked(const BlackBox& box, std::vector<Question> list) {
  const std::vector<std::uint64_t> d = box.answer(list);
  if (d.size() != list.size()) {
    throw formats::Error("probe", "the unit gave " + std::to_string(d.size()) + " answers to " +
                                      std::to_string(list.size()) + " questions");
  }
  Pool pool;
  for (std::size_t i = 0; i < list.size(); ++i) pool.push_back({std::move(list[i]), d[i]});
  return pool;
}

/// One question to the unit for all topics: a unit may take long to start.
Pools asked_of_each_topic(const BlackBox& box, const std::array<std::size_t, topics.size()>& counts,
                          std::mt19937_64& random) {
  std::vector<Question> all;
  for (std::size_t t = 0; t < topics.size(); ++t) {
    std::vector<Question> list = questions(box, topics[t], counts[t], random);
    std::move(list.begin(), list.end(), std::back_inserter(all));
  }
  Pool answers = asked(box, std::move(all));
  Pools pools;
  std::size_t next = 0;
  for (std::size_t t = 0; t < topics.size(); ++t) {
    for (std::size_t i = 0; i < counts[t]; ++i) pools[t].push_back(std::move(answers[next++]));
  }
  return pools;
}

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

/// The row with another value of one field, where no answer has ruled it out: the values next to
/// the row's own on either side, which are the hardest to see, and every word.
std::vector<MatrixInstruction> open_alternatives(const MatrixInstruction& row, const Pools& pools,
                                                 const Pools& fresh) {
  constexpr long nearest = 2;
  std::vector<MatrixInstruction> open;
  for (const Group group : groups) {
    const Step* const step = first_of(row, group);
    if (step == nullptr) continue;
    for (const ProbedField& field : probed_fields()) {
      const long now = field.get(step->spec);
      for (const long value : field.values(row, *step)) {
        if (value == now || (field.words.empty() && std::abs(value - now) > nearest)) continue;
        const MatrixInstruction other = with_value(row, group, field, value);
        const bool ruled_out =
            std::any_of(pools.begin(), pools.end(),
                        [&](const Pool& p) { return refutation(other, p).has_value(); }) ||
            std::any_of(fresh.begin(), fresh.end(),
                        [&](const Pool& p) { return refutation(other, p).has_value(); });
        if (!ruled_out) open.push_back(other);
      }
    }
  }
  return open;
}

/// Questions that the row and one of the alternatives answer differently, a few for each: what
/// chance did not ask, the models themselves can find.
std::vector<Question> telling_questions(const BlackBox& box, const MatrixInstruction& row,
                                        std::vector<MatrixInstruction> alternatives,
                                        std::mt19937_64& random) {
  std::vector<Question> telling;
  std::vector<std::size_t> found(alternatives.size());
  for (const Topic topic : topics) {
    for (Question& q : questions(box, topic, sifted_count, random)) {
      bool tells = false;
      std::optional<std::uint64_t> own;
      for (std::size_t i = 0; i < alternatives.size(); ++i) {
        if (found[i] >= telling_count) continue;
        if (!own) own = model(row, q);
        if (model(alternatives[i], q) == *own) continue;
        ++found[i];
        tells = true;
      }
      if (tells) telling.push_back(std::move(q));
    }
  }
  return telling;
}

/// Asks what tells the values apart that are still open; true when an answer refutes the row.
bool ask_what_tells(const BlackBox& box, const MatrixInstruction& row, Pools& pools, Pools& fresh,
                    std::mt19937_64& random) {
  std::vector<Question> list =
      telling_questions(box, row, open_alternatives(row, pools, fresh), random);
  if (list.empty()) return false;
  bool refuted = false;
  for (Answered& x : asked(box, std::move(list))) {
    const bool wrong = model(row, x.question) != x.d;
    refuted = refuted || wrong;
    (wrong ? pools.back() : fresh.back()).push_back(std::move(x));
  }
  return refuted;
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
    if (structures.empty() || fitted.mismatches > pools[0].size() / 4) break;
    if (!refuted && !ask_what_tells(box, fitted.row, pools, fresh, random)) break;
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
