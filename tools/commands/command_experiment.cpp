#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "emulator/gemm/plan_engine.hpp"
#include "experiments/harness/run.hpp"
#include "experiments/suite/suite.hpp"
#include "formats/support/error.hpp"
#include "formats/support/printable.hpp"
#include "formats/support/suggestions.hpp"
#include "formats/support/words.hpp"
#include "tools/commands/commands.hpp"
#include "tools/commands/refused_options.hpp"
#include "tools/console/division/division.hpp"
#include "tools/console/division/launcher.hpp"
#include "tools/console/elapsed.hpp"
#include "tools/console/interruption.hpp"
#include "tools/console/print_json.hpp"
#include "tools/console/read_json.hpp"
#include "tools/console/terminal.hpp"
#include "tools/console/threads_option.hpp"
#include "tools/plot/picture_file.hpp"
#include "tools/report/experiment_record.hpp"
#include "tools/report/experiment_text.hpp"
#include "tools/report/record_file.hpp"

namespace guardbit::tools {

namespace {

using experiments::Experiment;
using experiments::Parameter;
using experiments::Settings;
using formats::Error;
using nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

struct ExperimentOptions {
  std::vector<std::string> names, set;
  std::string record, folder, results;
  DivisionOptions division;
  PlotOptions plot;
  std::uint64_t seed = 1;
  int threads = 0;
  bool all = false, quick = false, fresh = false, json = false, markdown = false;
};

/// One KEY=VALUES, or NAME.KEY=VALUES for one experiment only.
struct Assignment {
  std::string text, experiment, key, values;
};

Assignment assignment_of(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0)
    throw Error("--set", formats::in_quotes(text) + " is not KEY=VALUES");
  Assignment a{text, "", text.substr(0, equals), text.substr(equals + 1)};
  const std::size_t dot = a.key.find('.');
  if (dot != std::string::npos) {
    a.experiment = experiments::require_experiment(a.key.substr(0, dot), "--set").name;
    a.key.erase(0, dot + 1);
  }
  return a;
}

const Parameter* find_parameter(const Experiment& experiment, std::string_view name) {
  for (const Parameter& p : experiment.parameters)
    if (p.name == name) return &p;
  return nullptr;
}

struct Planned {
  const Experiment* experiment = nullptr;
  Settings settings;
  std::uint64_t seed = 1;
  /// what is run again
  const ExperimentRecord* recorded = nullptr;
};

/// Applies every assignment to the experiments that have its key; at least one must.
void apply(const std::vector<std::string>& texts, std::vector<Planned>& runs) {
  for (const std::string& text : texts) {
    const Assignment a = assignment_of(text);
    bool used = false;
    std::vector<std::string_view> keys;
    for (Planned& run : runs) {
      if (!a.experiment.empty() && a.experiment != run.experiment->name) continue;
      for (const Parameter& p : run.experiment->parameters) keys.push_back(p.name);
      const Parameter* const parameter = find_parameter(*run.experiment, a.key);
      if (parameter == nullptr) continue;
      run.settings.set(a.key, experiments::parse_values(*parameter, a.values, "--set " + a.key));
      used = true;
    }
    if (used) continue;
    std::string valid;
    for (const std::string_view key : keys) valid += (valid.empty() ? "" : ", ") + std::string(key);
    if (valid.empty()) throw Error("--set", "nothing to set in " + formats::in_quotes(a.text));
    throw Error("--set", formats::unknown_name("parameter", a.key, keys), valid);
  }
}

/// What a record says, checked: it may come from anywhere.
Planned planned_by(const ExperimentRecord& record, const std::string& where) {
  const Experiment& experiment = experiments::require_experiment(record.identity.experiment, where);
  Planned run{&experiment, {}, record.identity.seed, &record};
  for (const Parameter& p : experiment.parameters) {
    const auto found = record.identity.settings.all().find(std::string(p.name));
    if (found == record.identity.settings.all().end())
      throw Error(where, "parameter " + std::string(p.name) + " is missing");
    std::vector<std::string> values;
    for (const std::string& text : found->second)
      for (std::string& value :
           experiments::parse_values(p, text, where + ": parameter " + std::string(p.name)))
        values.push_back(std::move(value));
    run.settings.set(p.name, std::move(values));
  }
  return run;
}

std::vector<Planned> planned_runs(const ExperimentOptions& options,
                                  const ExperimentRecord* record) {
  if ((options.all ? 1 : 0) + (options.names.empty() ? 0 : 1) + (record == nullptr ? 0 : 1) != 1)
    throw Error("experiment run", "needs names, --all or --record, one of them");
  std::vector<Planned> runs;
  if (record != nullptr) {
    if (!options.set.empty() || options.quick)
      throw Error("--record", "not together with --set and --quick");
    return {planned_by(*record, formats::printable(options.record))};
  }
  if (options.all) {
    for (const Experiment& x : experiments::suite()) runs.push_back({&x, {}, options.seed});
  }
  for (const std::string& name : options.names)
    runs.push_back({&experiments::require_experiment(name, "experiment run"), {}, options.seed});
  for (Planned& run : runs)
    run.settings = experiments::usual_settings(run.experiment->parameters, options.quick);
  apply(options.set, runs);
  return runs;
}

/// Says how far an experiment is, and after some seconds how long it may still take.
class Progress {
 public:
  /// `place`: which of several runs it is, or empty.
  Progress(std::string_view name, const std::string& place)
      : name_(std::string(name) + (place.empty() ? "" : " (" + place + ")")) {}

  void operator()(double share) {
    std::string label = name_;
    const double seconds = seconds_since(start_);
    constexpr double seconds_before_an_estimate = 3;
    if (seconds > seconds_before_an_estimate && share > 0 && share < 1)
      label += ", about " + std::to_string(static_cast<int>(seconds * (1 - share) / share) + 1) +
               " s left";
    constexpr std::size_t steps = 1000;
    line_.emplace(label, steps);
    line_->update(static_cast<std::size_t>(share * steps));
  }

 private:
  std::string name_;
  Clock::time_point start_ = Clock::now();
  std::optional<ProgressLine> line_;
};

/// What executes the plans, names joined by commas.
std::string engines_of(const std::set<std::string>& plans) {
  std::set<std::string_view> names;
  for (const std::string& plan : plans)
    names.insert(emulator::plan_engine("auto", emulator::parse_plan(plan, "record")).name);
  std::string text;
  for (const std::string_view name : names) text += (text.empty() ? "" : ", ") + std::string(name);
  return text;
}

class Session {
 public:
  explicit Session(const ExperimentOptions& options) : options_(options) {}

  int run(const std::vector<Planned>& runs) {
    if (runs.size() == 1 && !is_divided(options_.division, 1)) return run_alone(runs.front());
    std::vector<ordered_json> results;
    if (is_divided(options_.division, runs.size())) {
      threads_ = threads_of_process(options_.threads);
      const auto divided = divide(options_.division,
                                  {.description = description_of_all(runs),
                                   .work = [&](std::size_t i) { return result_of(runs[i]); }},
                                  interruption_);
      if (!divided) return 0;
      results = *divided;
    } else {
      for (std::size_t i = 0; i < runs.size(); ++i) {
        place_ = std::to_string(i + 1) + " of " + std::to_string(runs.size());
        results.push_back(result_of(runs[i]));
        check_interruption();
      }
    }
    print_results(options_, results);
    return 0;
  }

  /// Of several experiments.
  static void print_results(const ExperimentOptions& options,
                            const std::vector<ordered_json>& results) {
    ordered_json all = ordered_json::array();
    Table summary("llllr");
    summary.add({"name", "question", "verdict", "why", "seconds"});
    const auto add = [&](const ordered_json& x) {
      const ordered_json& result = x.at("result");
      all.push_back(result);
      summary.add({result.at("name").get<std::string>(), result.at("question").get<std::string>(),
                   result.at("verdict").get<std::string>(), x.at("why").get<std::string>(),
                   number(result.at("seconds").get<double>(), "%.2f")});
    };
    for (const ordered_json& x : results) of_kept_results("experiment", [&] { add(x); });
    if (options.json)
      print_json({{"experiments", all}});
    else
      summary.print(std::cout);
  }

 private:
  int run_alone(const Planned& planned) {
    const auto start = Clock::now();
    ordered_json result;
    const experiments::Outcome outcome = execute(planned, result);
    check_interruption();
    result["seconds"] = seconds_since(start);
    const bool is_again = planned.recorded != nullptr;
    const bool is_same = !is_again || result["same_as_record"] == true;
    if (options_.json) {
      print_json({{"experiments", ordered_json::array({result})}});
    } else {
      print_outcome(std::cout, *planned.experiment, outcome, seconds_since(start));
      if (result.contains("engine"))
        std::cout << "engine " << result["engine"].get<std::string>() << '\n';
      if (is_again)
        std::cout << (is_same ? std::string("Every point is what the record says.\n")
                              : "The points differ from those of the record, first " +
                                    result["first_difference"].get<std::string>() + ".\n");
    }
    constexpr int status_differs = 1;
    return is_same ? 0 : status_differs;
  }

  /// Of one of several experiments.
  ordered_json result_of(const Planned& planned) {
    const auto start = Clock::now();
    ordered_json result;
    const experiments::Outcome outcome = execute(planned, result);
    result["seconds"] = seconds_since(start);
    return {{"result", std::move(result)}, {"why", outcome.why()}};
  }

  WorkDescription description_of_all(const std::vector<Planned>& runs) const {
    WorkDescription work{"experiment", {}, {{"quick", options_.quick}, {"set", options_.set}}};
    work.question["seed"] = options_.seed;
    for (const Planned& planned : runs) work.pieces.emplace_back(planned.experiment->name);
    return work;
  }

  void check_interruption() const {
    interruption_.check(options_.folder.empty() ? "" : "; the same command goes on from here");
  }

  std::string file_of(const Experiment& x, std::string_view extension) const {
    if (options_.folder.empty()) return {};
    return options_.folder + "/" + std::string(x.name) + std::string(extension);
  }

  experiments::Outcome execute(const Planned& planned, ordered_json& result) {
    const Experiment& x = *planned.experiment;
    const RunIdentity identity = identity_of(x, planned.settings, planned.seed);
    RecordFile file(file_of(x, ".json"), identity, options_.fresh || planned.recorded != nullptr);
    Progress progress(x.name, place_);
    experiments::Run run(
        {.settings = planned.settings,
         .seed = planned.seed,
         .threads = threads_,
         .known = file.points(),
         .stop = [&] { return interruption_.asked_for(); },
         .progress = [&](double share) { progress(share); },
         .finished = [&](const experiments::Run& r, const std::string& key,
                         const experiments::PointResult& p) { file.add(r, key, p); }});
    experiments::Outcome outcome;
    try {
      outcome = x.run(run);
    } catch (const experiments::Stopped&) {
      file.keep();
      check_interruption();
    }
    result = to_json(x, outcome);
    file.complete(run, result);
    if (!file.plans().empty()) result["engine"] = engines_of(file.plans());
    if (planned.recorded != nullptr) {
      const std::string other = first_other_point(run.points(), planned.recorded->points);
      result["same_as_record"] = other.empty();
      if (!other.empty()) result["first_difference"] = other;
    }
    plot(x, outcome);
    return outcome;
  }

  void plot(const Experiment& x, const experiments::Outcome& outcome) const {
    if (outcome.figure.curves.empty()) {
      if (options_.plot.asked()) throw Error("--plot", std::string(x.name) + " has no figure");
      return;
    }
    if (options_.plot.asked())
      write_picture(options_.plot.path, chart(outcome.figure, options_.plot.chart()));
    const std::string path = file_of(x, ".svg");
    if (!path.empty() && !drawn_part(outcome.figure).curves.empty())
      write_picture(path, chart(outcome.figure));
  }

  const ExperimentOptions& options_;
  Interruption interruption_;
  int threads_ = options_.threads;
  /// of the run at hand among several
  std::string place_;
};

int run(const ExperimentOptions& options) {
  ExperimentRecord record;
  if (!options.record.empty()) record = read_record(options.record);
  const std::vector<Planned> runs =
      planned_runs(options, options.record.empty() ? nullptr : &record);
  options.plot.require_valid();
  if (options.plot.asked() && runs.size() != 1)
    throw Error("--plot", "needs one experiment; -o takes any number");
  if (!options.folder.empty()) {
    std::error_code error;
    std::filesystem::create_directories(options.folder, error);
    if (error) throw Error(formats::printable(options.folder), "cannot make this folder");
  }
  return Session(options).run(runs);
}

void merge(const ExperimentOptions& options) {
  Session::print_results(options, merged_results_of("experiment", options.names));
}

void list(const ExperimentOptions& options) {
  if (options.markdown) {
    ordered_json results = {{"experiments", ordered_json::array()}};
    if (!options.results.empty()) {
      results = read_json<ordered_json>(options.results);
      if (!results.is_object() || !results.contains("experiments"))
        throw Error(formats::printable(options.results),
                    "is not what 'guardbit experiment run --json' prints");
    }
    print_suite_page(std::cout, results);
    return;
  }
  ordered_json all = ordered_json::array();
  Table table("lll");
  table.add({"name", "slug", "question"});
  for (const Experiment& x : experiments::suite()) {
    table.add({std::string(x.name), std::string(x.slug), std::string(x.question)});
    all.push_back(description_of(x));
  }
  if (options.json) {
    print_json({{"experiments", all}});
  } else {
    table.print(std::cout);
  }
}

void show(const ExperimentOptions& options) {
  ordered_json all = ordered_json::array();
  for (const std::string& name : options.names) {
    const Experiment& x = experiments::require_experiment(name, "experiment show");
    if (options.json) {
      all.push_back(description_of(x));
    } else {
      print_experiment(std::cout, x);
    }
  }
  if (options.json) print_json({{"experiments", all}});
}

void add_experiment_list(CLI::App& experiment) {
  CLI::App* const command =
      experiment.add_subcommand("list", "The experiments and their questions");
  const auto options = std::make_shared<ExperimentOptions>();
  command->add_flag("--json", options->json, "Print JSON");
  command->add_flag("--markdown", options->markdown, "Print the page of the suite");
  command
      ->add_option("--results", options->results,
                   "With --markdown: what 'run --all --json' printed")
      ->type_name("FILE");
  command->footer("Example: guardbit experiment list");
  command->callback([options] { list(*options); });
}

void add_experiment_show(CLI::App& experiment) {
  CLI::App* const command =
      experiment.add_subcommand("show", "What an experiment does, expects and takes");
  const auto options = std::make_shared<ExperimentOptions>();
  command->add_option("NAME", options->names, "Experiments, as list names them")->required();
  command->add_flag("--json", options->json, "Print JSON");
  command->footer("Example: guardbit experiment show E08");
  command->callback([options] { show(*options); });
}

void add_experiment_merge(CLI::App& experiment) {
  CLI::App* const command =
      experiment.add_subcommand("merge", "What 'run --part' gave, put together");
  const auto options = std::make_shared<ExperimentOptions>();
  command->add_option("PART", options->names, "The files of --results")->required();
  command->add_flag("--json", options->json, "Print JSON");
  command->footer("Example: guardbit experiment merge part1 part2");
  command->callback([options] { merge(*options); });
}

void add_experiment_run(CLI::App& experiment, int& status) {
  CLI::App* const command =
      experiment.add_subcommand("run", "Run experiments and compare with what is known");
  const auto options = std::make_shared<ExperimentOptions>();
  command->add_option("NAME", options->names, "Experiments, as list names them");
  command->add_flag("--all", options->all, "All of them");
  command->add_flag("--quick", options->quick, "Smaller sizes: the whole suite in minutes");
  command
      ->add_option(
          "--set", options->set,
          "KEY=VALUES, or NAME.KEY=VALUES: a parameter of the experiments that have it; values as a list, FIRST:LAST:STEP or FIRST:LAST:xFACTOR")
      ->type_name("KEY=VALUES");
  command->add_option("--seed", options->seed, "Of the random numbers (default 1)")
      ->check(below_zero);
  command
      ->add_option("--record", options->record,
                   "Run again what this record says, and say whether every point is the same")
      ->type_name("FILE");
  add_plot_options(*command, options->plot, "Draw the figure into this file");
  command
      ->add_option(
          "-o,--output", options->folder,
          "Write NAME.json (the record) and NAME.svg into this folder; a run that was interrupted goes on from its record")
      ->type_name("DIR");
  command->add_flag("--fresh", options->fresh, "With -o: compute every point again");
  add_threads_option(*command, options->threads);
  add_division_options(*command, options->division);
  command->add_flag("--json", options->json, "Print JSON");
  command->footer(
      "Verdicts: reproduced, differs (from the reference, by more than the stated tolerance), or\n"
      "undecidable (nothing here can decide). The exit status is 0 for each of them, and 1 where a\n"
      "point differs from that of --record.\n"
      "Recordings that experiments ask are looked for in $GUARDBIT_DATA, in tests/golden, and in\n"
      "share/guardbit/golden beside the program or of its installation.\n"
      "Example: guardbit experiment run E08 --set K=512:16384:x2 --plot e08.pdf --width 336 --range 0.1:20\n"
      "Example: guardbit experiment run --all --quick -o results");
  command->callback([options, command, &status] {
    if (!options->record.empty() || options->plot.asked())
      refuse_unread(*command, {"--part", "--results"}, "without --record and --plot");
    if (!options->division.part.empty())
      refuse_unread(*command, {"--json"}, "without --part: 'guardbit experiment merge' takes it");
    status = run(*options);
  });
}

}  // namespace

void add_experiment(CLI::App& app, int& status) {
  CLI::App* const experiment =
      app.add_subcommand("experiment", "Reproduce published and measured figures about precision");
  experiment->require_subcommand(1);
  experiment->footer(
      "Example: guardbit experiment run E08\n"
      "'guardbit experiment COMMAND --help' explains a command.");
  add_experiment_list(*experiment);
  add_experiment_show(*experiment);
  add_experiment_run(*experiment, status);
  add_experiment_merge(*experiment);
}

}  // namespace guardbit::tools
