#include <algorithm>
#include <sstream>

#include "emulator/catalogue.hpp"
#include "emulator/dot.hpp"
#include "tests/catch.hpp"
#include "tests/emulator/inputs.hpp"
#include "tests/emulator/oracle_rules.hpp"

// Every row of the catalogue against the exact-rational oracle.
namespace {

using namespace guardbit;
using namespace guardbit::tests;

struct Disagreement {
  DotInputs inputs;
  std::uint64_t computed = 0, judged = 0;
};

std::string text_of(const Disagreement& d) {
  std::ostringstream text;
  text << tests::text_of(d.inputs) << std::hex << "\nmodel " << d.computed << ", oracle "
       << d.judged;
  return text.str();
}

/// Compares `cases` cases of a family; the first disagreement, and their number in `failures`.
std::optional<Disagreement> compare(const MatrixInstruction& row, const Judge& judge,
                                    InputFamily family, std::uint64_t seed, int cases,
                                    int& failures) {
  std::optional<Disagreement> first;
  for (int i = 0; i < cases; ++i) {
    DotInputs x = dot_inputs(row, family, seed, static_cast<std::uint64_t>(i));
    const std::uint64_t computed = emulator::dot(row, x.view());
    const std::uint64_t judged = judge.answer(x);
    if (agree(row, judge, computed, judged)) continue;
    ++failures;
    if (!first) first = Disagreement{std::move(x), computed, judged};
  }
  return first;
}

/// Rows that compute alike: one of them is compared on many cases, each on a few.
bool same_arithmetic(const MatrixInstruction& x, const MatrixInstruction& y) {
  return x.a == y.a && x.b == y.b && x.c == y.c && x.d == y.d && x.scale == y.scale &&
         emulator::stored_k(x, x.shape.k) == emulator::stored_k(y, y.shape.k) &&
         std::equal(x.steps.begin(), x.steps.end(), y.steps.begin(), y.steps.end());
}

/// `deep` cases of each family for each distinct arithmetic, `shallow` for every row.
void compare_catalogue(std::uint64_t seed, int deep, int shallow) {
  std::vector<std::pair<const MatrixInstruction*, std::string>> seen;
  for (const MatrixInstruction& row : emulator::catalogue()) {
    const Judge judge = judge_of(row);
    const bool is_new = std::none_of(seen.begin(), seen.end(), [&](const auto& other) {
      return other.second == judge.rule && same_arithmetic(*other.first, row);
    });
    if (is_new) seen.emplace_back(&row, judge.rule);
    for (const InputFamily family : input_families(row)) {
      int failures = 0;
      const auto first =
          compare(row, judge, family, is_new ? seed : seed + 1, is_new ? deep : shallow, failures);
      if (!first) continue;
      FAIL_CHECK(text_of(row) << "\nrule: " << judge.rule << "\ninputs: " << family_name(family)
                              << ", " << failures << " disagree; the first:\n"
                              << text_of(*first));
    }
  }
  CHECK(seen.size() > 50);
}

}  // namespace

TEST_CASE("every row computes what the oracle says") { compare_catalogue(1, 24, 1); }

TEST_CASE("every row computes what the oracle says, many cases", "[sweep]") {
  compare_catalogue(1000, 480, 20);
}
