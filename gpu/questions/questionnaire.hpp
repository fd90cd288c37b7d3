#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/questions/comparisons.hpp"
#include "gpu/questions/questions.hpp"

namespace guardbit::gpu {

/// Instructions that were given the same codes.
struct Asked {
  std::vector<const TensorCoreInstruction*> rows;
  std::vector<std::string> probes;  ///< describe_codes
};

/// What one or several instructions answered alike to inputs of the same values.
struct Reply {
  std::vector<Asked> asked;
  std::string inputs;              ///< describe_inputs
  std::vector<std::string> words;  ///< of D, hexadecimal
  std::string conclusion;          ///< the outcome's meaning, or why there is none
  bool decided = false;
  bool as_model = false;  ///< the model of that machine answers with the same words

  std::vector<const TensorCoreInstruction*> rows() const;
};

/// A question and everything that was answered to it.
struct Section {
  std::string_view id, text;
  std::vector<Reply> replies;
  std::vector<Comparison> comparisons;

  /// Every reply is the model's, and every comparison ends with its first candidate.
  bool as_model() const;
};

/// Ids of every question, in order, each once.
std::vector<std::string_view> question_ids();

/// formats::Error for an id that there is not.
void check_question_ids(const std::vector<std::string>& ids);

/// Puts the questions of these ids (all when empty) to every instruction of `arch` that they
/// concern. `proceed` is called before each question
/// with how many have been answered; false ends the questionnaire.
std::vector<Section> answer_questions(const std::vector<std::string>& ids, std::string_view arch,
                                      const Answerer& answerer, std::uint64_t seed,
                                      const std::function<bool(std::size_t)>& proceed);

/// The host model of `arch` as an answerer.
Answerer model_answerer(std::string_view arch);

}  // namespace guardbit::gpu
