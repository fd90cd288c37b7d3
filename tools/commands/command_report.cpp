#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "formats/files/atomic_output.hpp"
#include "tools/commands/commands.hpp"
#include "tools/console/terminal.hpp"
#include "tools/page/plot.hpp"
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

void print_json(const ReportedFolder& folder) {
  ordered_json runs = ordered_json::array(), left_out = ordered_json::array();
  for (const ReportedRun& run : folder.runs) {
    runs.push_back({{"file", run.file},
                    {"experiment", run.experiment->name},
                    {"verdict", verdict_of(run)},
                    {"points", run.record.points.size()},
                    {"command", command_of(run)},
                    {"result", run.record.result}});
  }
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
  std::cout << ordered_json{{"runs", runs}, {"trainings", trainings}, {"left_out", left_out}}.dump(
                   2, ' ', false, ordered_json::error_handler_t::replace)
            << '\n';
}

void print_text(const ReportedFolder& folder) {
  Table verdicts("lll");
  verdicts.add({"run", "question", "verdict"});
  for (const ReportedRun& run : folder.runs)
    verdicts.add({run.file, std::string(run.experiment->question), verdict_of(run)});
  if (!folder.runs.empty()) verdicts.print(std::cout);
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
    if (!has_gnuplot())
      std::cerr
          << "guardbit: plots in characters: gnuplot is not installed (Debian, Ubuntu: gnuplot-nox)\n";
    // Drawn before the file is begun, so that an interrupt leaves nothing.
    constexpr std::size_t steps = 100;
    ProgressLine line("drawing", steps);
    const std::string text = report_page(
        folder, [&](double share) { line.update(static_cast<std::size_t>(share * steps)); });
    formats::AtomicOutput page(options.page);
    page.write(text);
    page.commit();
  }
  if (options.json) {
    print_json(folder);
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
