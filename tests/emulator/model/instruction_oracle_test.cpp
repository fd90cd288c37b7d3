#include <algorithm>
#include <sstream>

#include "emulator/catalogue/instruction_catalogue.hpp"
#include "emulator/model/dot.hpp"
#include "tests/catch.hpp"
#include "tests/emulator/inputs/catalogue_inputs.hpp"
#include "tests/emulator/inputs/oracle_rules.hpp"

// Every instruction of the catalogue against the exact-rational oracle.
namespace {

using namespace guardbit;
using namespace guardbit::tests;

struct Disagreement {
  DotInputs inputs;
  std::uint64_t computed = 0, judged = 0;
};

std::string explanation_of(const Disagreement& d) {
  std::ostringstream text;
  text << text_of(d.inputs) << std::hex << "\nmodel " << d.computed << ", oracle " << d.judged;
  return text.str();
}

/// Compares `cases` cases of a family; the first disagreement, and their number in `failures`.
std::optional<Disagreement> compare(const MatrixInstruction& instruction, const Judge& judge,
                                    InputFamily family, std::uint64_t seed, int cases,
                                    int& failures) {
  std::optional<Disagreement> first;
  for (int i = 0; i < cases; ++i) {
    DotInputs x = dot_inputs(instruction, family, seed, static_cast<std::uint64_t>(i));
    const std::uint64_t computed = emulator::dot(instruction, x.view());
    const std::uint64_t judged = judge.answer(x);
    if (agree(instruction, judge, computed, judged)) continue;
    ++failures;
    if (!first) first = Disagreement{std::move(x), computed, judged};
  }
  return first;
}

/// Instructions that compute alike: one of them is compared on many cases, each on a few.
bool same_arithmetic(const MatrixInstruction& x, const MatrixInstruction& y) {
  return x.a == y.a && x.b == y.b && x.c == y.c && x.d == y.d && x.scale == y.scale &&
         emulator::stored_k(x, x.shape.k) == emulator::stored_k(y, y.shape.k) &&
         std::equal(x.steps.begin(), x.steps.end(), y.steps.begin(), y.steps.end());
}

/// `deep` cases of each family for each distinct arithmetic, `shallow` for every instruction.
void compare_catalogue(std::uint64_t seed, int deep, int shallow) {
  std::vector<std::pair<const MatrixInstruction*, std::string>> seen;
  for (const MatrixInstruction& instruction : emulator::catalogue()) {
    const Judge judge = judge_of(instruction);
    const bool is_new = std::none_of(seen.begin(), seen.end(), [&](const auto& other) {
      return other.second == judge.rule && same_arithmetic(*other.first, instruction);
    });
    if (is_new) seen.emplace_back(&instruction, judge.rule);
    for (const InputFamily family : input_families(instruction)) {
      int failures = 0;
      const auto first = compare(instruction, judge, family, is_new ? seed : seed + 1,
                                 is_new ? deep : shallow, failures);
      if (!first) continue;
      FAIL_CHECK(text_of(instruction) << "\nrule: " << judge.rule << "\ninputs: " << name_of(family)
                                      << ", " << failures << " disagree; the first:\n"
                                      << explanation_of(*first));
    }
  }
  CHECK(seen.size() > 100);
}

}  // namespace

TEST_CASE("every instruction computes what the oracle says") { compare_catalogue(1, 40, 2); }

TEST_CASE("every instruction computes what the oracle says, many cases", "[sweep]") {
  compare_catalogue(1000, 2400, 60);
}

// ---- The inputs themselves
// ------------------------------------------------------------------------

namespace {

/// How often each kind of result occurs among the oracle's answers to a family.
struct Outcomes {
  int zero = 0, subnormal = 0, infinity = 0, nan = 0, same_as_addend = 0, cancelled = 0;
};

constexpr int outcome_cases = 400;

Outcomes outcomes_of(std::string_view arch, std::string_view name, InputFamily family) {
  const MatrixInstruction instruction = emulator::require_instruction(arch, name, "test");
  const Judge judge = judge_of(instruction);
  const oracle::FormatParameters d = oracle_format(instruction.d);
  Outcomes outcomes;
  for (std::uint64_t i = 0; i < outcome_cases; ++i) {
    const DotInputs x = dot_inputs(instruction, family, 3, i);
    const std::uint64_t answer = judge.answer(x);
    const oracle::Number number = oracle::decode(d, answer);
    const std::uint64_t magnitude = answer & ((std::uint64_t{1} << (d.bits - 1)) - 1);
    outcomes.zero += number.is_zero() ? 1 : 0;
    outcomes.nan += number.is_nan() ? 1 : 0;
    outcomes.infinity += number.is_infinity() ? 1 : 0;
    const bool below = magnitude < (std::uint64_t{1} << d.fraction_bits);
    outcomes.subnormal += below && magnitude != 0 ? 1 : 0;
    const oracle::Number addend = oracle::decode(oracle_format(instruction.c), x.c);
    oracle::Dyadic amplified = number.magnitude;
    amplified.exponent += 6;
    outcomes.cancelled +=
        number.is_finite() && oracle::compare(amplified, addend.magnitude) < 0 ? 1 : 0;
    outcomes.same_as_addend += answer == x.c ? 1 : 0;
  }
  return outcomes;
}

constexpr std::string_view f16_name = "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16";
constexpr std::string_view bf16_name = "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32";
constexpr std::string_view fp8_name = "wgmma.mma_async.sync.aligned.m64nNk32.f32.e5m2.e4m3";

}  // namespace

TEST_CASE("the input families reach what they are named for") {
  for (const std::string_view name : {f16_name, bf16_name}) {
    const auto outcomes = [name](InputFamily family) { return outcomes_of("sm_90", name, family); };
    CHECK(outcomes(InputFamily::sum_cancellation).cancelled > outcome_cases * 3 / 4);
    CHECK(outcomes(InputFamily::tiny_terms).subnormal > outcome_cases / 4);
    CHECK(outcomes(InputFamily::tiny_terms).zero > outcome_cases / 50);
    CHECK(outcomes(InputFamily::near_overflow).infinity > outcome_cases / 20);
    CHECK(outcomes(InputFamily::near_overflow).infinity < outcome_cases * 19 / 20);
    CHECK(outcomes(InputFamily::infinity_times_zero).nan == outcome_cases);
    CHECK(outcomes(InputFamily::infinity_minus_infinity).nan > outcome_cases / 4);
    CHECK(outcomes(InputFamily::exact_zeros).zero > outcome_cases / 2);
    const Outcomes single = outcomes(InputFamily::one_special);
    CHECK(single.nan > outcome_cases / 10);
    CHECK(single.infinity > outcome_cases / 20);
    const Outcomes specials = outcomes(InputFamily::many_specials);
    CHECK(specials.nan > outcome_cases / 4);
    CHECK(specials.nan < outcome_cases);
    CHECK(outcomes(InputFamily::narrow_exponents).same_as_addend < outcome_cases / 10);
  }
  CHECK(outcomes_of("sm_90", bf16_name, InputFamily::huge_products).infinity > outcome_cases / 20);
  CHECK(outcomes_of("sm_90", bf16_name, InputFamily::huge_products).infinity <
        outcome_cases * 19 / 20);
  CHECK(outcomes_of("sm_90", fp8_name, InputFamily::infinity_times_zero).nan > outcome_cases / 4);
  const std::string_view bytes = "mma.sync.aligned.m16n8k32.row.col.satfinite.s32.s8.s8.s32";
  const MatrixInstruction saturating = emulator::require_instruction("sm_90", bytes, "test");
  int saturated = 0;
  for (std::uint64_t i = 0; i < outcome_cases; ++i) {
    const DotInputs x = dot_inputs(saturating, InputFamily::extreme_integers, 4, i);
    const std::uint64_t answer = judge_of(saturating).answer(x);
    saturated += answer == 0x7FFFFFFF || answer == 0x80000000 ? 1 : 0;
  }
  CHECK(saturated > outcome_cases / 5);
  CHECK(saturated < outcome_cases * 4 / 5);
}
