// The questions put to a device, answered here by the model: every probe decides, and the model
// says what an H200 said.

#include "gpu/questions.hpp"

#include <map>
#include <set>
#include <string>
#include <vector>

#include "formats/catalogue.hpp"
#include "gpu/comparisons.hpp"
#include "gpu/host_model.hpp"
#include "gpu/plain_form.hpp"
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
  for_each_inquiry([](const Question&, const Inquiry& inquiry) {
    for (const Outcome& outcome : inquiry.outcomes()) {
      if (!outcome.hypothesis) continue;
      INFO(outcome.meaning << "; " << describe_inputs(inquiry));
      const Answer answer = answer_of(*outcome.hypothesis, inquiry);
      CHECK(answer.words == outcome.words);
    }
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
