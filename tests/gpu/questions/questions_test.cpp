// The questions put to a device, answered here by the model: every probe decides, and the model
// says what an H200 said.

#include "gpu/questions/questions.hpp"

#include <map>
#include <set>
#include <string>
#include <vector>

#include "formats/format_catalogue.hpp"
#include "formats/support/error.hpp"
#include "gpu/model/host_model.hpp"
#include "gpu/operands/ptx_kernel.hpp"
#include "gpu/questions/comparisons.hpp"
#include "gpu/questions/questionnaire.hpp"
#include "tests/catch.hpp"

namespace {

using namespace guardbit;
using namespace guardbit::gpu;

Answer answer_of(const emulator::MatrixInstruction& model, const Inquiry& inquiry) {
  Batch batch = pose(inquiry);
  run_on_host_model(model, inquiry.row, batch);
  return read_answer(inquiry, batch);
}

/// Calls visit(question, inquiry) for every question and every instruction it concerns.
template <class Visit>
void for_each_inquiry(Visit visit) {
  for (const Question& question : questions()) {
    for (const TensorCoreInstruction& row : tensor_core_instructions()) {
      if (!question.concerns(row)) continue;
      const emulator::MatrixInstruction model = catalogue_row(row);
      INFO(std::string(question.id)
           << " " << std::string(row.name) << " " << std::string(row.variant));
      visit(question, inquire(question, row, model));
    }
  }
}

const Answerer model_answers = {[](const TensorCoreInstruction& row, Batch& batch) {
                                  run_on_host_model(catalogue_row(row), row, batch);
                                },
                                [](const TensorCoreInstruction& row, Batch& batch) {
                                  run_on_host_model(catalogue_row(row), row, batch);
                                }};

}  // namespace

TEST_CASE("the outcomes of a question differ from each other in their words") {
  for_each_inquiry([](const Question&, const Inquiry& inquiry) {
    REQUIRE(inquiry.outcomes().size() >= 2);
    std::set<std::vector<std::uint64_t>> words;
    for (const Outcome& outcome : inquiry.outcomes()) {
      INFO(outcome.meaning);
      REQUIRE(words.insert(outcome.words).second);
    }
  });
}

TEST_CASE("a row changed as an outcome says answers with that outcome's words") {
  // Questions about what no row of the catalogue can say: their outcomes have words only.
  const std::set<std::string_view> beyond_rows = {"Q2b", "Q3b", "Q3c", "Q4c", "Q8", "Q11"};
  for_each_inquiry([&](const Question& question, const Inquiry& inquiry) {
    const Answer believed = answer_of(inquiry.believed, inquiry);
    int told_apart = 0;
    for (const Outcome& outcome : inquiry.outcomes()) {
      if (!outcome.hypothesis) continue;
      INFO(outcome.meaning << "; " << describe_inputs(inquiry));
      const Answer answer = answer_of(*outcome.hypothesis, inquiry);
      CHECK(answer.words == outcome.words);
      if (!(answer == believed)) ++told_apart;
    }
    CHECK((told_apart >= 1 || beyond_rows.contains(question.id)));
  });
}

TEST_CASE("the model answers every question, at every place alike") {
  for_each_inquiry([](const Question&, const Inquiry& inquiry) {
    const Answer answer = answer_of(inquiry.believed, inquiry);
    INFO(describe_inputs(inquiry));
    CHECK(answer.same_everywhere);
    CHECK(conclude(inquiry, answer) != nullptr);
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
  for_each_inquiry([&](const Question& question, const Inquiry& inquiry) {
    for (const Expected& expected : measured) {
      if (expected.id != question.id || expected.a != inquiry.row.a || expected.d != inquiry.row.d)
        continue;
      met.insert(&expected);
      CHECK(answer_of(inquiry.believed, inquiry).words == expected.words);
    }
  });
  CHECK(met.size() == measured.size());
}

TEST_CASE("sparse probes and moved probes hold their terms in the places that count") {
  const TensorCoreInstruction& row =
      *find_plain("mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32");
  const emulator::MatrixInstruction model = catalogue_row(row);
  Inquiry inquiry(row, model);
  inquiry.probe_value(3).term(0, 2, 5).term(1, 1, 7);
  inquiry.keep_together(2);
  REQUIRE(inquiry.placements() == 8);
  const Batch batch = pose(inquiry);
  std::set<int> places;
  for (int r = 0; r < inquiry.placements(); ++r) {
    long double total = 3;
    for (int s = 0; s < row.stored_k(); ++s) {
      const std::size_t at = element_index(row.m, row.stored_k(), 0, r, s);
      const int k = dense_column(row, s, batch.e[at]);
      if (batch.a[at] != 0) places.insert(s);
      total += value_of(row.a, batch.a[at]) *
               value_of(row.b, batch.b[element_index(row.k, row.n, 0, k, r)]);
    }
    CHECK(total == 20);
  }
  CHECK(places.size() == 16);
}

TEST_CASE("inputs are described exactly and briefly") {
  const TensorCoreInstruction& row =
      *find_plain("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32");
  const emulator::MatrixInstruction model = catalogue_row(row);
  Inquiry inquiry(row, model);
  inquiry.probe_value(1 + two(-23)).term(0, 1.5L, two(-40)).codes(1, 0x7F800001, 0x80000000);
  CHECK(describe_inputs(inquiry) == "c = 1+2^-23, p0 = 3*2^-1 * 2^-40, p1 = [7f800001] * -0");
  CHECK(describe_codes(row, inquiry.probes()[0]) ==
        "c=3f800001 0:3fc00000*2b800000 1:7f800001*80000000");
  inquiry.probe_value(1 + two(-23)).term(3, -2, 1).fill(1, 1);
  CHECK(describe_inputs(inquiry) ==
        "c = 1+2^-23; p0 = 3*2^-1 * 2^-40, p1 = [7f800001] * -0 | p3 = -2 * 1, other p = 1 * 1");
}

TEST_CASE("random inputs tell the compositions of FP8 mma.sync apart, and FP8 blocks by L and F") {
  for (const ComparisonQuestion& question : comparison_questions()) {
    if (question.id == "Q19" || question.id == "Q18c") continue;
    int asked = 0;
    for (const TensorCoreInstruction& row : tensor_core_instructions()) {
      if (!question.concerns(row) || row.k % 64 == 0) continue;
      const Comparison comparison = question.ask(row, model_answers, 1);
      INFO(std::string(question.id) << " " << std::string(row.name));
      CHECK(comparison.conclusion() == comparison.candidates.data());
      CHECK(comparison.candidates.size() >= 3);
      ++asked;
    }
    CHECK(asked > 0);
  }
}

TEST_CASE("an operand choice that did more than it says is noticed") {
  const TensorCoreInstruction* variant = nullptr;
  for (const TensorCoreInstruction& row : tensor_core_instructions())
    if (row.variant == "neg_a" && row.d == formats::fp32) variant = &row;
  REQUIRE(variant != nullptr);
  const Answerer ignoring = {[](const TensorCoreInstruction& row, Batch& batch) {
                               TensorCoreInstruction plain = row;
                               plain.negate_a = false;
                               run_on_host_model(catalogue_row(row), plain, batch);
                             },
                             {}};
  for (const ComparisonQuestion& question : comparison_questions()) {
    if (question.id != "Q19") continue;
    CHECK(question.concerns(*variant));
    CHECK(question.ask(*variant, model_answers, 1).conclusion() != nullptr);
    CHECK(question.ask(*variant, ignoring, 1).conclusion() == nullptr);
  }
}

TEST_CASE("the questionnaire counts an answer unlike the model's") {
  const auto always = [](std::size_t) { return true; };
  for (const Section& section :
       answer_questions({"Q1", "Q9"}, "sm_90", model_answerer("sm_90"), 1, always)) {
    CHECK(section.as_model());
    CHECK_FALSE(section.replies.empty());
  }
  const Executor off_by_one = [](const TensorCoreInstruction& row, Batch& batch) {
    run_on_host_model(catalogue_row(row), row, batch);
    for (std::uint64_t& word : batch.d) ++word;
  };
  for (const Section& section :
       answer_questions({"Q1", "Q9"}, "sm_90", {off_by_one, off_by_one}, 1, always)) {
    CHECK_FALSE(section.as_model());
    for (const Reply& reply : section.replies) CHECK_FALSE(reply.as_model);
  }
  CHECK_THROWS_AS(check_question_ids({"Q99"}), formats::Error);
  CHECK(answer_questions({}, "sm_90", model_answerer("sm_90"), 1, [](std::size_t) {
          return false;
        }).empty());
}

TEST_CASE("PTX for the driver names every register of the fragments") {
  const std::string text =
      ptx_kernel(*find_plain("mma.sync.aligned.m16n8k32.row.col.f16.e4m3.e5m2.f16"));
  CHECK(text.find("mma.sync.aligned.m16n8k32.row.col.f16.e4m3.e5m2.f16 {%d0, %d1}, {%a0, %a1, %a2, "
                  "%a3}, {%b0, %b1}, {%c0, %c1};") != std::string::npos);
  const std::string sparse =
      ptx_kernel(*find_plain("mma.sp.sync.aligned.m16n8k64.row.col.f32.e4m3.e4m3.f32"));
  CHECK(sparse.find("{%c0, %c1, %c2, %c3}, %e0, 0;") != std::string::npos);
  CHECK_THROWS_AS(ptx_kernel(*find_plain("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64")),
                  formats::Error);
}
