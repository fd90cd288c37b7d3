#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "experiments/harness/experiment.hpp"
#include "tools/report/experiment_record.hpp"
#include "tools/train/train_folder.hpp"

namespace guardbit::tools {

/// A record of a folder, and what it says.
struct ReportedRun {
  /// its path below the folder
  std::string file;
  const experiments::Experiment* experiment = nullptr;
  ExperimentRecord record;
  /// nothing of a run that was interrupted
  std::optional<experiments::Outcome> outcome;
};

struct ReportedFolder {
  std::string name;
  std::vector<ReportedRun> runs;
  std::vector<ReportedTraining> trainings;
  /// files and why
  std::vector<std::pair<std::string, std::string>> left_out;
};

/// The records of a folder and those below it, by experiment, then by path, and the training runs.
/// A file whose name ends in .json and that is no record is left out with `keep_going`, otherwise
/// formats::Error, which also says that there is neither.
ReportedFolder reported_folder(const std::string& path, bool keep_going);

/// The command that computes the same points.
std::string command_of(const ReportedRun& run);

/// "reproduced", "differs", "undecidable", or "incomplete".
std::string verdict_of(const ReportedRun& run);

/// A page that stands by itself: verdicts and training runs first, then each of them. `progress` is
/// told the share that is done.
std::string report_page(const ReportedFolder& folder,
                        const std::function<void(double)>& progress = {});

}  // namespace guardbit::tools
