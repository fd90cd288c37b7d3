#include <algorithm>
#include <filesystem>

#include "experiments/harness/settings.hpp"
#include "experiments/suite/suite.hpp"
#include "formats/support/error.hpp"
#include "formats/support/joined.hpp"
#include "formats/support/printable.hpp"
#include "formats/support/words.hpp"
#include "tools/products/verify_report.hpp"
#include "tools/report/report_page.hpp"

namespace guardbit::tools {

namespace {

namespace files = std::filesystem;
using experiments::Experiment;
using experiments::Parameter;
using experiments::Settings;
using formats::Error;

std::vector<files::path> json_files(const std::string& path) {
  std::vector<files::path> found;
  std::error_code error;
  files::recursive_directory_iterator at(path, error);
  for (; !error && at != files::end(at); at.increment(error))
    if (at->path().extension() == ".json" && at->is_regular_file(error))
      found.push_back(at->path());
  if (error) throw Error(formats::printable(path), "cannot be read: " + error.message());
  std::ranges::sort(found);
  return found;
}

ReportedRun run_of(const std::string& path, const std::string& shown) {
  ReportedRun run{shown, nullptr, read_record(path), {}};
  const std::string where = formats::printable(path);
  run.experiment = &experiments::require_experiment(run.record.identity.experiment, where);
  for (const Parameter& p : run.experiment->parameters) {
    if (!run.record.identity.settings.all().contains(std::string(p.name)))
      throw Error(where, "parameter " + std::string(p.name) + " is missing");
  }
  if (!run.record.complete) return run;
  try {
    run.outcome = outcome_of(run.record.result);
  } catch (const std::exception&) {
    throw Error(where, "its result is not an experiment's");
  }
  return run;
}

}  // namespace

ReportedFolder reported_folder(const std::string& path, bool keep_going) {
  ReportedFolder folder;
  folder.name = formats::printable(path);
  const auto reports = [&](const std::string& shown, const auto& read) {
    try {
      read();
    } catch (const Error& error) {
      if (!keep_going) throw;
      folder.left_out.emplace_back(shown, error.what());
    }
  };
  const std::vector<std::string> trainings = training_folders(path);
  for (const std::string& at : trainings) {
    std::string shown = formats::printable(files::relative(at, path).string());
    if (shown == ".") shown = formats::printable(files::path(at).lexically_normal().string());
    reports(shown, [&] { folder.trainings.push_back(read_training(at, shown)); });
  }
  for (const files::path& file : json_files(path)) {
    if (file.filename() == "results.json" &&
        std::ranges::find(trainings, file.parent_path().string()) != trainings.end())
      continue;
    const std::string shown = formats::printable(files::relative(file, path).string());
    reports(shown, [&] { folder.runs.push_back(run_of(file.string(), shown)); });
  }
  if (folder.runs.empty() && folder.trainings.empty()) {
    throw Error(
        formats::printable(path),
        "holds no record of an experiment ('guardbit experiment run NAME -o DIR' writes them) and no training run ('guardbit train CONFIG -o DIR')");
  }
  // The files are in the order of their names already; the suite's order is that of its numbers.
  std::ranges::stable_sort(folder.runs, {},
                           [](const ReportedRun& r) { return r.experiment->name; });
  return folder;
}

std::string command_of(const ReportedRun& run) {
  const Experiment& x = *run.experiment;
  const RunIdentity& identity = run.record.identity;
  std::string command = "guardbit experiment run " + std::string(x.name);
  const Settings usual = experiments::usual_settings(x.parameters, false);
  if (identity.settings != usual &&
      identity.settings == experiments::usual_settings(x.parameters, true)) {
    command += " --quick";
  } else {
    for (const Parameter& p : x.parameters) {
      const auto& values = identity.settings.words(p.name);
      if (values == usual.words(p.name)) continue;
      command += " --set " + shell_word(std::string(p.name) + "=" + formats::joined(values, ","));
    }
  }
  if (identity.seed != 1) command += " --seed " + std::to_string(identity.seed);
  return command;
}

std::string verdict_of(const ReportedRun& run) {
  if (!run.outcome) return "incomplete";
  return std::string(formats::word_of(run.outcome->verdict()));
}

}  // namespace guardbit::tools
