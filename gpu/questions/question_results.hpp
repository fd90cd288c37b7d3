#pragma once

// The results of numbered questions: their hypothesis tests and comparisons are run on a device or
// a model and collected by question. `guardbit gpu probe-questions` prints them.

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/questions/comparisons.hpp"
#include "gpu/questions/questions.hpp"

namespace guardbit::gpu {

/// Instructions that were tested with the same words.
struct Tested {
  std::vector<const TensorCoreInstruction*> instructions;
  /// the operands of each trial, as describe_codes writes them
  std::vector<std::string> trials;
};

/// The result of a test, shared by all instructions with the same inputs and observation.
struct TestResult {
  std::vector<Tested> tested;
  /// the inputs as numbers, as describe_inputs writes them
  std::string inputs;
  /// observed words of D, hexadecimal
  std::vector<std::string> words;
  /// the supported hypothesis, or why the question is undecided
  std::string conclusion;
  bool decided = false;
  /// the catalogue's model gives the same words
  bool as_model = false;

  std::vector<const TensorCoreInstruction*> instructions() const;
};

/// All results of one question.
struct QuestionResult {
  std::string_view id, text;
  std::vector<TestResult> results;
  std::vector<Comparison> comparisons;

  /// Every test gives the model's words, and every comparison supports its first rule.
  bool as_model() const;
};

/// Ids of all questions in order ("Q1", "Q1b", "Q2"), each once.
std::vector<std::string_view> question_ids();

/// Throws formats::Error for an unknown id.
void check_question_ids(const std::vector<std::string>& ids);

/// Tests the questions of these ids (all if there are none) on every instruction of `arch` that
/// they concern. `proceed` gets the number of questions done before each one; false ends the run.
std::vector<QuestionResult> test_questions(const std::vector<std::string>& ids,
                                           std::string_view arch, const Executors& executors,
                                           std::uint64_t seed,
                                           const std::function<bool(std::size_t)>& proceed);

/// Executors that compute with the model of `arch` on the host.
Executors model_executors(std::string_view arch);

}  // namespace guardbit::gpu
