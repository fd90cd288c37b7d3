// Hypothesis tests of the questions, executed by the model: every test supports one hypothesis, and
// the words are those that an H200 gave.

#include "gpu/questions/questions.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "formats/format_catalogue.hpp"
#include "formats/support/error.hpp"
#include "gpu/model/host_model.hpp"
#include "gpu/operands/ptx_kernel.hpp"
#include "gpu/questions/comparisons.hpp"
#include "gpu/questions/question_results.hpp"
#include "tests/catch.hpp"

namespace {

using namespace guardbit;
using namespace guardbit::gpu;

Observation observe_model(const emulator::MatrixInstruction& model, const HypothesisTest& test) {
  Batch batch = batch_of(test);
  run_on_host_model(model, test.instruction, batch);
  return observe(test, batch);
}

/// Calls visit(question, test) for every question and every instruction it concerns, or one of
/// those that compute alike.
template <class Visit>
void for_each_test(Visit visit, bool each_arithmetic_once = false) {
  for (const Question& question : questions()) {
    std::vector<emulator::MatrixInstruction> seen;
    for (const TensorCoreInstruction& instruction : tensor_core_instructions()) {
      if (!question.concerns(instruction)) continue;
      const emulator::MatrixInstruction model = catalogue_instruction(instruction);
      const auto same = [&](const emulator::MatrixInstruction& x) {
        return x.a == model.a && x.b == model.b && x.c == model.c && x.d == model.d &&
               x.shape.k == model.shape.k && x.sparsity == model.sparsity &&
               x.scale == model.scale &&
               std::equal(x.steps.begin(), x.steps.end(), model.steps.begin(), model.steps.end());
      };
      if (each_arithmetic_once && std::any_of(seen.begin(), seen.end(), same)) continue;
      seen.push_back(model);
      INFO(std::string(question.id)
           << " " << std::string(instruction.name) << " " << std::string(instruction.variant));
      visit(question, make_test(question, instruction, model));
    }
  }
}

const Executors model_answers = {
    [](const TensorCoreInstruction& instruction, Batch& batch) {
      run_on_host_model(catalogue_instruction(instruction), instruction, batch);
    },
    [](const TensorCoreInstruction& instruction, Batch& batch) {
      run_on_host_model(catalogue_instruction(instruction), instruction, batch);
    }};

}  // namespace

TEST_CASE("the hypotheses of a question predict different words") {
  for_each_test([](const Question&, const HypothesisTest& test) {
    REQUIRE(test.hypotheses().size() >= 2);
    std::set<std::vector<std::uint64_t>> words;
    for (const Hypothesis& hypothesis : test.hypotheses()) {
      INFO(hypothesis.meaning);
      REQUIRE(words.insert(hypothesis.words).second);
    }
  });
}

TEST_CASE("a model changed as a hypothesis says gives the words that it predicts", "[long]") {
  // Questions about arithmetic that no model has: their hypotheses have words only.
  const std::set<std::string_view> beyond_the_model = {"Q2b", "Q3b", "Q3c", "Q4c", "Q8", "Q11"};
  for_each_test(
      [&](const Question& question, const HypothesisTest& test) {
        const Observation assumed = observe_model(test.assumed, test);
        INFO(describe_inputs(test));
        int distinguished = 0;
        for (const Hypothesis& hypothesis : test.hypotheses()) {
          if (!hypothesis.model) continue;
          INFO(hypothesis.meaning);
          const Observation observation = observe_model(*hypothesis.model, test);
          CHECK(observation.words == hypothesis.words);
          if (!(observation == assumed)) ++distinguished;
        }
        CHECK((distinguished >= 1 || beyond_the_model.contains(question.id)));
      },
      true);
}

TEST_CASE("the model supports one hypothesis of every question, at every placement") {
  for_each_test([](const Question&, const HypothesisTest& test) {
    const Observation observation = observe_model(test.assumed, test);
    INFO(describe_inputs(test));
    CHECK(observation.same_everywhere);
    CHECK(supported_hypothesis(test, observation) != nullptr);
  });
}

TEST_CASE("the model gives the answers that recordings of an H200 gave") {
  // Independent of the table's own texts: words by question and format of D.
  struct Expected {
    std::string_view id;
    formats::Format a, d;
    std::vector<std::uint64_t> words;
  };
  using namespace formats;
  const std::vector<Expected> measured = {
      {"Q1", fp16, fp16, {1, 1, 1, 1, 0, 0}},
      {"Q1b", fp16, fp16, {1, 1, 1, 1, 0, 0}},
      {"Q1c", fp16, fp16, {1, 1, 1, 1, 0, 0}},
      {"Q2", bf16, fp32, {0, 0, 0}},
      {"Q2", tf32, fp32, {0, 0, 0}},
      {"Q3", bf16, fp32, {1, 1, 1, 1, 1, 0, 0, 0}},
      {"Q3", tf32, fp32, {1, 1, 1, 1, 1, 0, 0, 0}},
      {"Q3b", bf16, fp32, {2, 2, 1, 1}},
      {"Q4", e4m3, fp32, {0x3F800000, 0x3F800400, 0x3F800400}},
      {"Q4b", e5m2, fp32, {0x3F800000, 0x40000000}},
      {"Q5", e4m3, fp16, {0x3C01, 0x3C01, 0x3C00, 0x3C00, 0x3C00}},
      {"Q7", bf16, fp32, {0x73000000, 0, 0x7F7FFFFF, 0x7F800000}},
      {"Q9", fp16, fp32, {0x3F800000, 0x3F800000}},
      {"Q10", tf32, fp32, {0x3F800000, 0x7F800000, 0x7FFFFFFF, 0x3F800000, 0x7F800000, 0x7FFFFFFF}},
      {"Q17", fp16, fp32, {0x3F800001, 0x3F800001, 0x3F800000}},
      {"Q17", fp16, fp16, {0x3C00, 0x3C01}}};
  std::set<const Expected*> met;
  for_each_test([&](const Question& question, const HypothesisTest& test) {
    for (const Expected& expected : measured) {
      if (expected.id != question.id || expected.a != test.instruction.a ||
          expected.d != test.instruction.d)
        continue;
      met.insert(&expected);
      CHECK(observe_model(test.assumed, test).words == expected.words);
    }
  });
  CHECK(met.size() == measured.size());
}

TEST_CASE("sparse trials and moved trials have their terms where they count") {
  const TensorCoreInstruction& instruction =
      *find_plain("mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32");
  const emulator::MatrixInstruction model = catalogue_instruction(instruction);
  HypothesisTest test(instruction, model);
  test.trial_value(3).term(0, 2, 5).term(1, 1, 7);
  test.keep_together(2);
  REQUIRE(test.placements() == 8);
  const Batch batch = batch_of(test);
  std::set<int> places;
  for (int r = 0; r < test.placements(); ++r) {
    long double total = 3;
    for (int s = 0; s < instruction.stored_k(); ++s) {
      const std::size_t at = element_index(instruction.m, instruction.stored_k(), 0, r, s);
      const int k = dense_column(instruction, s, batch.e[at]);
      if (batch.a[at] != 0) places.insert(s);
      total +=
          value_of(instruction.a, batch.a[at]) *
          value_of(instruction.b, batch.b[element_index(instruction.k, instruction.n, 0, k, r)]);
    }
    CHECK(total == 20);
  }
  CHECK(places.size() == 16);
}

TEST_CASE("inputs are described exactly and briefly") {
  const TensorCoreInstruction& instruction =
      *find_plain("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32");
  const emulator::MatrixInstruction model = catalogue_instruction(instruction);
  HypothesisTest test(instruction, model);
  test.trial_value(1 + two(-23)).term(0, 1.5L, two(-40)).codes(1, 0x7F800001, 0x80000000);
  CHECK(describe_inputs(test) == "c = 1+2^-23, p0 = 3*2^-1 * 2^-40, p1 = [7f800001] * -0");
  CHECK(describe_codes(instruction, test.trials()[0]) ==
        "c=3f800001 0:3fc00000*2b800000 1:7f800001*80000000");
  test.trial_value(1 + two(-23)).term(3, -2, 1).fill(1, 1);
  CHECK(describe_inputs(test) ==
        "c = 1+2^-23; p0 = 3*2^-1 * 2^-40, p1 = [7f800001] * -0 | p3 = -2 * 1, other p = 1 * 1");
}

TEST_CASE("random inputs distinguish the compositions of FP8 mma.sync, and FP8 blocks by L and F",
          "[long]") {
  for (const ComparisonQuestion& question : comparison_questions()) {
    if (question.id == "Q19" || question.id == "Q18c") continue;
    int tested = 0;
    for (const TensorCoreInstruction& instruction : tensor_core_instructions()) {
      if (!question.concerns(instruction) || instruction.k % 64 == 0) continue;
      const Comparison comparison = question.test(instruction, model_answers, 1);
      INFO(std::string(question.id) << " " << std::string(instruction.name));
      CHECK(comparison.supported() == comparison.rules.data());
      CHECK(comparison.rules.size() >= 3);
      ++tested;
    }
    CHECK(tested > 0);
  }
}

TEST_CASE("an operand choice that did more than it says is noticed") {
  const TensorCoreInstruction* variant = nullptr;
  for (const TensorCoreInstruction& instruction : tensor_core_instructions())
    if (instruction.variant == "neg_a" && instruction.d == formats::fp32) variant = &instruction;
  REQUIRE(variant != nullptr);
  const Executors ignoring = {[](const TensorCoreInstruction& instruction, Batch& batch) {
                                TensorCoreInstruction plain = instruction;
                                plain.negate_a = false;
                                run_on_host_model(catalogue_instruction(instruction), plain, batch);
                              },
                              {}};
  for (const ComparisonQuestion& question : comparison_questions()) {
    if (question.id != "Q19") continue;
    CHECK(question.concerns(*variant));
    CHECK(question.test(*variant, model_answers, 1).supported() != nullptr);
    CHECK(question.test(*variant, ignoring, 1).supported() == nullptr);
  }
}

TEST_CASE("a result unlike the model's is counted") {
  const auto always = [](std::size_t) { return true; };
  for (const QuestionResult& question :
       test_questions({"Q1", "Q9"}, "sm_90", model_executors("sm_90"), 1, always)) {
    CHECK(question.as_model());
    CHECK_FALSE(question.results.empty());
  }
  const Executor off_by_one = [](const TensorCoreInstruction& instruction, Batch& batch) {
    run_on_host_model(catalogue_instruction(instruction), instruction, batch);
    for (std::uint64_t& word : batch.d) ++word;
  };
  for (const QuestionResult& question :
       test_questions({"Q1", "Q9"}, "sm_90", {off_by_one, off_by_one}, 1, always)) {
    CHECK_FALSE(question.as_model());
    for (const TestResult& result : question.results) CHECK_FALSE(result.as_model);
  }
  CHECK_THROWS_AS(check_question_ids({"Q99"}), formats::Error);
  CHECK(test_questions({}, "sm_90", model_executors("sm_90"), 1, [](std::size_t) {
          return false;
        }).empty());
}

TEST_CASE("PTX for the driver names every register of the fragments") {
  const std::string text =
      ptx_kernel(*find_plain("mma.sync.aligned.m16n8k32.row.col.f16.e4m3.e5m2.f16"));
  CHECK(
      text.find(
          "mma.sync.aligned.m16n8k32.row.col.f16.e4m3.e5m2.f16 {%d0, %d1}, {%a0, %a1, %a2, %a3}, {%b0, %b1}, {%c0, %c1};") !=
      std::string::npos);
  const std::string sparse =
      ptx_kernel(*find_plain("mma.sp.sync.aligned.m16n8k64.row.col.f32.e4m3.e4m3.f32"));
  CHECK(sparse.find("{%c0, %c1, %c2, %c3}, %e0, 0;") != std::string::npos);
  CHECK_THROWS_AS(ptx_kernel(*find_plain("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64")),
                  formats::Error);
}
