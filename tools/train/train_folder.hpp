#pragma once

#include <string>
#include <vector>

#include "experiments/harness/experiment.hpp"
#include "tools/train/train_quantise.hpp"
#include "tools/train/train_run.hpp"

namespace guardbit::tools {

/// A folder that `guardbit train -o` wrote, as far as it got.
struct ReportedTraining {
  /// shown: below the folder that is reported
  std::string path, shown;
  /// the text of its config.toml
  std::string config;
  bool is_complete = false;
  /// in the order in which they were trained
  std::vector<TrainResult> results;
  QuantisedNetworks integers;
};

/// The folders at and below `path` that hold a config.toml and the log of a recipe, by their names.
std::vector<std::string> training_folders(const std::string& path);
/// formats::Error for a results.json, a log or a checkpoint that is damaged.
ReportedTraining read_training(const std::string& path, const std::string& shown);

/// The command that goes on, or does the same again.
std::string command_of(const ReportedTraining& training);

/// Losses, the loss scale with its skipped steps, gradients that were lost, and how far the loss is
/// from FP32's, over the steps; those that have anything to show.
std::vector<experiments::Figure> figures_of(const ReportedTraining& training);

/// The training as a section of a report.
std::string section_of(const ReportedTraining& training, const std::string& anchor);

}  // namespace guardbit::tools
