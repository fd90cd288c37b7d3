#pragma once

#include <iosfwd>
#include <nlohmann/json.hpp>

#include "experiments/experiment.hpp"

namespace guardbit::tools {

/// One run in full: question, what was measured beside what it should be, notes, the plot.
void print_outcome(std::ostream& out, const experiments::Experiment& experiment,
                   const experiments::Outcome& outcome, double seconds);

/// One experiment before it runs: question, method, expected, parameters.
void print_experiment(std::ostream& out, const experiments::Experiment& experiment);
nlohmann::ordered_json description_of(const experiments::Experiment& experiment);

/// The suite as a document, with what `experiment run --all --json` printed.
void print_suite_page(std::ostream& out, const nlohmann::ordered_json& results);

}  // namespace guardbit::tools
