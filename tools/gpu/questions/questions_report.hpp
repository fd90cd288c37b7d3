#pragma once

// Results of the numbered questions as text and as JSON.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "gpu/questions/question_results.hpp"

namespace guardbit::tools {

/// Prints each question and, below it, the inputs, words of D, conclusion and instructions of its
/// tests.
void print_results(const std::vector<gpu::QuestionResult>& results);

/// The results, the questions that other commands answer, and those that need other machines: the
/// format of docs/hardware/*-questions.json.
nlohmann::ordered_json results_json(const std::vector<gpu::QuestionResult>& results);

}  // namespace guardbit::tools
