#pragma once

#include <iosfwd>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "experiments/harness/experiment.hpp"

namespace guardbit::tools {

// As the terminal, the document and the report write them.
std::string measured_text(const experiments::Finding& finding);
/// "<= 2 +- 0.1"
std::string expected_text(const experiments::Reference& reference);
/// Where it is from, and how we know.
std::string source_text(const experiments::Reference& reference);
/// Why it may differ by that much, or why nothing can decide; empty where it must be equal.
const std::string& reason_of(const experiments::Reference& reference);
/// What a parameter may be.
std::string range_of(const experiments::Parameter& parameter);

/// One run in full: question, what was measured beside what it should be, notes, the plot.
void print_outcome(std::ostream& out, const experiments::Experiment& experiment,
                   const experiments::Outcome& outcome, std::optional<double> seconds = {});

/// One experiment before it runs: question, method, expected, parameters.
void print_experiment(std::ostream& out, const experiments::Experiment& experiment);
nlohmann::ordered_json description_of(const experiments::Experiment& experiment);

/// The suite as a document, with what `experiment run --all --json` printed.
void print_suite_page(std::ostream& out, const nlohmann::ordered_json& results);

}  // namespace guardbit::tools
