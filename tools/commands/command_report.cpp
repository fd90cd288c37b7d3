#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "formats/files/atomic_output.hpp"
#include "tools/commands/commands.hpp"
#include "tools/console/columns.hpp"
#include "tools/console/print_json.hpp"
#include "tools/console/terminal.hpp"
#include "tools/plot/text_plot.hpp"
#include "tools/report/experiment_text.hpp"
#include "tools/report/report_page.hpp"
#include "tools/train/train_report.hpp"

namespace guardbit::tools {

namespace {

using nlohmann::ordered_json;

struct ReportOptions {
  std::string folder, page;
  bool keep_going = false, json = false;
};

/// Runs of experiments; a table gives their commands and what they say below it.
const Columns<ReportedRun>& run_columns() {
  using R = ReportedRun;
  static const Columns<R> columns = {
      {"file", "run", Side::left, [](const R& r) { return r.file; }},
      {"experiment", "", Side::none, [](const R& r) { return r.experiment->name; }},
      {"",
       "question",
       Side::left,
       {},
       [](const R& r) { return std::string(r.experiment->question); }},
      {"verdict", "verdict", Side::left, verdict_of},
      {"points", "", Side::none, [](const R& r) { return r.record.points.size(); }},
      {"command", "", Side::none, [](const R& r) { return command_of(r); }},
      {"result", "", Side::none, [](const R& r) { return r.record.result; }}};
  return columns;
}

ordered_json document_of(const ReportedFolder& folder) {
  ordered_json left_out = ordered_json::array();
  ordered_json trainings = ordered_json::array();
  for (const ReportedTraining& training : folder.trainings) {
    ordered_json j = to_json(training.results);
    j["folder"] = training.shown;
    j["complete"] = training.is_complete;
    j["command"] = command_of(training);
    if (!training.integers.rows.empty()) j["integers"] = to_json(training.integers);
    trainings.push_back(std::move(j));
  }
  for (const auto& [file, why] : folder.left_out)
    left_out.push_back({{"file", file}, {"reason", why}});
  return {{"runs", run_columns().json_list(folder.runs)},
          {"trainings", trainings},
          {"left_out", left_out}};
}

void print_text(const ReportedFolder& folder) {
  if (!folder.runs.empty()) run_columns().print(std::cout, folder.runs);
  for (const ReportedRun& run : folder.runs) {
    std::cout << '\n' << paint(run.file + ": " + command_of(run), Colour::dim) << '\n';
    if (run.outcome) {
      print_outcome(std::cout, *run.experiment, *run.outcome);
    } else {
      std::cout << run.experiment->name << ": interrupted after " << run.record.points.size()
                << " points\n";
    }
  }
  for (const ReportedTraining& training : folder.trainings) {
    std::cout << '\n'
              << paint(training.shown + ": " + command_of(training), Colour::dim) << '\n'
              << (training.is_complete ? "" : "interrupted\n");
    print_comparison(std::cout, training.results);
    print_quantised(std::cout, training.integers);
    for (const experiments::Figure& figure : figures_of(training))
      std::cout << '\n' << text_plot(figure);
  }
}

void report(const ReportOptions& options) {
  const ReportedFolder folder = reported_folder(options.folder, options.keep_going);
  for (const auto& [file, why] : folder.left_out)
    std::cerr << "guardbit: left out: " << why << '\n';
  if (!options.page.empty()) {
    // Drawn before the file is begun, so that an interrupt leaves nothing.
    constexpr std::size_t steps = 100;
    ProgressLine line("drawing", steps);
    const std::string text = report_page(
        folder, [&](double share) { line.update(static_cast<std::size_t>(share * steps)); });
    formats::write_file(options.page, text);
  }
  if (options.json) {
    print_json(document_of(folder));
  } else if (options.page.empty()) {
    print_text(folder);
  }
}

}  // namespace

void add_report(CLI::App& app, int& /*status*/) {
  CLI::App* const command =
      app.add_subcommand("report", "All runs of a folder as one page, or as text");
  const auto options = std::make_shared<ReportOptions>();
  command
      ->add_option(
          "DIR", options->folder,
          "Folder of records and training runs, as 'experiment run -o DIR' and 'train -o DIR' write them")
      ->required();
  command
      ->add_option("-o,--output", options->page,
                   "Write a page with plots and all numbers, which needs no network")
      ->type_name("FILE");
  command->add_flag("--keep-going", options->keep_going,
                    "Leave out .json files that are no records, and say so");
  command->add_flag("--json", options->json, "Print JSON");
  command->footer(
      "Without -o and --json it prints verdicts, findings and plots in characters.\n"
      "Example: guardbit experiment run --all --quick -o results\n"
      "         guardbit report results -o report.html");
  command->callback([options] { report(*options); });
}

}  // namespace guardbit::tools
