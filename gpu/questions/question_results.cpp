#include "gpu/questions/question_results.hpp"

#include <algorithm>

#include "emulator/catalogue/instruction_catalogue.hpp"
#include "formats/support/error.hpp"
#include "gpu/model/host_model.hpp"

namespace guardbit::gpu {

namespace {

std::string conclusion_text(const Observation& observation, const Hypothesis* hypothesis) {
  if (!observation.same_everywhere) return "undecided: the answer depends on the position along k";
  return hypothesis == nullptr ? "undecided: no hypothesis predicts these words"
                               : hypothesis->meaning;
}

TestResult run_test(const HypothesisTest& test, const Executor& execute) {
  Batch batch = batch_of(test), modelled = batch;
  execute(test.instruction, batch);
  run_on_host_model(test.assumed, test.instruction, modelled);
  const Observation observation = observe(test, batch);
  const Hypothesis* const hypothesis = supported_hypothesis(test, observation);
  TestResult result{.tested = {{{&test.instruction}, {}}},
                    .inputs = describe_inputs(test),
                    .words = {},
                    .conclusion = conclusion_text(observation, hypothesis),
                    .decided = hypothesis != nullptr,
                    .as_model = observation == observe(test, modelled)};
  for (const Trial& trial : test.trials())
    result.tested.front().trials.push_back(describe_codes(test.instruction, trial));
  for (const std::uint64_t word : observation.words)
    result.words.push_back(hexadecimal(test.instruction.d, word));
  return result;
}

bool alike(const TestResult& x, const TestResult& y) {
  return x.inputs == y.inputs && x.words == y.words && x.conclusion == y.conclusion &&
         x.as_model == y.as_model;
}

/// Adds the result, or its instructions to an equal result.
void add_result(QuestionResult& question, TestResult result) {
  const auto found = std::ranges::find_if(
      question.results, [&](const TestResult& other) { return alike(result, other); });
  if (found == question.results.end()) {
    question.results.push_back(std::move(result));
    return;
  }
  const Tested& tested = result.tested.front();
  const auto same = std::ranges::find(found->tested, tested.trials, &Tested::trials);
  if (same == found->tested.end())
    found->tested.push_back(tested);
  else
    same->instructions.push_back(tested.instructions.front());
}

/// Orders ids by number, then by letter: Q1, Q1b, Q2, Q15.
bool in_order(std::string_view x, std::string_view y) {
  const auto key = [](std::string_view id) {
    const std::size_t end = id.find_last_of("0123456789") + 1;
    return std::pair(std::stoi(std::string(id.substr(1, end - 1))), id.substr(end));
  };
  return key(x) < key(y);
}

}  // namespace

std::vector<const TensorCoreInstruction*> TestResult::instructions() const {
  std::vector<const TensorCoreInstruction*> all;
  for (const Tested& part : tested)
    all.insert(all.end(), part.instructions.begin(), part.instructions.end());
  return all;
}

bool QuestionResult::as_model() const {
  return std::ranges::all_of(results, &TestResult::as_model) &&
         std::ranges::all_of(comparisons, [](const Comparison& comparison) {
           return comparison.supported() == comparison.rules.data();
         });
}

std::vector<std::string_view> question_ids() {
  std::vector<std::string_view> ids;
  for (const Question& question : questions()) ids.push_back(question.id);
  for (const ComparisonQuestion& question : comparison_questions()) ids.push_back(question.id);
  std::ranges::stable_sort(ids, in_order);
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

void check_question_ids(const std::vector<std::string>& ids) {
  const auto known = question_ids();
  std::string choices;
  for (const std::string_view id : known)
    choices += (choices.empty() ? "" : ", ") + std::string(id);
  for (const std::string& id : ids)
    if (std::ranges::find(known, id) == known.end())
      throw formats::Error("probe-questions", "no question '" + id + "'", choices);
}

std::vector<QuestionResult> test_questions(const std::vector<std::string>& ids,
                                           std::string_view arch, const Executors& executors,
                                           std::uint64_t seed,
                                           const std::function<bool(std::size_t)>& proceed) {
  std::vector<QuestionResult> results;
  const auto for_each_instruction = [&](const auto& question, auto visit) {
    if (results.back().text.empty()) results.back().text = question.text;
    for (const TensorCoreInstruction& instruction : tensor_core_instructions())
      if (question.concerns(instruction))
        if (const auto model = emulator::find_instruction(arch, instruction.name))
          visit(instruction, *model);
  };
  for (const std::string_view id : question_ids()) {
    if (!ids.empty() && std::ranges::find(ids, id) == ids.end()) continue;
    if (!proceed(results.size())) break;
    results.push_back({id, {}, {}, {}});
    for (const Question& question : questions())
      if (question.id == id)
        for_each_instruction(question, [&](const auto& instruction, const auto& model) {
          add_result(results.back(), run_test(make_test(question, instruction, model),
                                              executors.of(question.translation)));
        });
    for (const ComparisonQuestion& question : comparison_questions())
      if (question.id == id)
        for_each_instruction(question, [&](const auto& instruction, const auto&) {
          results.back().comparisons.push_back(question.test(instruction, executors, seed));
        });
  }
  return results;
}

Executors model_executors(std::string_view arch) {
  const Executor execute = [arch](const TensorCoreInstruction& instruction, Batch& batch) {
    const auto model = emulator::find_instruction(arch, instruction.name);
    if (!model)
      throw formats::Error(std::string(arch), "has no '" + std::string(instruction.name) + "'");
    run_on_host_model(*model, instruction, batch);
  };
  return {execute, execute};
}

}  // namespace guardbit::gpu
