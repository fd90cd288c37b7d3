#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "experiments/harness/experiment.hpp"
#include "experiments/harness/run.hpp"

namespace guardbit::tools {

/// All that decides what a run computes: two runs with the same one give the same bits.
struct RunIdentity {
  std::string experiment, version;
  /// fingerprint of this program: a rebuilt one may compute otherwise
  std::string program;
  std::uint64_t seed = 1;
  experiments::Settings settings;

  friend bool operator==(const RunIdentity&, const RunIdentity&) = default;
};

RunIdentity identity_of(const experiments::Experiment& experiment,
                        const experiments::Settings& settings, std::uint64_t seed);

/// One run as a file keeps it: enough to run it again, and its points, so that a run that was
/// interrupted goes on.
struct ExperimentRecord {
  RunIdentity identity;
  experiments::Points points;
  bool complete = false;
  std::set<std::string> plans, formats;
  /// as to_json of the outcome; null until complete
  nlohmann::ordered_json result;
};

void write_record(const std::string& path, const ExperimentRecord& record);
/// formats::Error for a file that is not such a record.
ExperimentRecord read_record(const std::string& path);

/// name, verdict, measured, reference, tolerance; then the findings one by one, notes and figure.
nlohmann::ordered_json to_json(const experiments::Experiment& experiment,
                               const experiments::Outcome& outcome);

/// What that says. nlohmann::json::exception or formats::Error where it says nothing of the kind.
experiments::Outcome outcome_of(const nlohmann::ordered_json& result);

}  // namespace guardbit::tools
