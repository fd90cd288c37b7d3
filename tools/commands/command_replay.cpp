#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "emulator/replay/comparison.hpp"
#include "emulator/replay/plan_book.hpp"
#include "emulator/replay/recording.hpp"
#include "emulator/replay/replay.hpp"
#include "formats/files/atomic_output.hpp"
#include "formats/support/error.hpp"
#include "formats/support/parallel.hpp"
#include "formats/support/printable.hpp"
#include "tools/commands/commands.hpp"
#include "tools/commands/refused_options.hpp"
#include "tools/console/division/division.hpp"
#include "tools/console/division/launcher.hpp"
#include "tools/console/exit_status.hpp"
#include "tools/console/interruption.hpp"
#include "tools/console/print_json.hpp"
#include "tools/console/terminal.hpp"
#include "tools/console/threads_option.hpp"
#include "tools/products/plan_book_file.hpp"
#include "tools/products/replay_report.hpp"
#include "tools/products/replayed_file.hpp"
#include "tools/report/replay_page.hpp"

namespace guardbit::tools {

namespace {

struct ReplayOptions {
  std::vector<std::string> files;
  std::string report, book, against;
  DivisionOptions division;
  double search_seconds = 20;
  bool json = false;
  int threads = 0;
};

using emulator::replay::PlanBook;
using emulator::replay::Recording;

ReplayedFile replayed(const std::string& path, const ReplayOptions& options, int threads,
                      const Interruption& interruption, PlanBook& book) {
  const Recording recording = emulator::replay::read_recording(path);
  emulator::replay::require_measured_library(recording);
  ProgressLine progress("replaying " + formats::printable(path), recording.calls.size());
  emulator::replay::ReplaySettings settings;
  settings.threads = threads;
  book.search_seconds = options.search_seconds;
  book.interrupted = [&] { return interruption.asked_for(); };
  settings.plans = &book;
  settings.interrupted = book.interrupted;
  settings.progress = [&](std::size_t done) { progress.update(done); };
  ReplayedFile file{
      .path = path, .ops = {}, .replay = emulator::replay::replay(recording, settings)};
  for (const auto& call : recording.calls) file.ops.push_back(call.op);
  return file;
}

/// With plans that are known: what is said of a recording does not depend on those beside it.
ReplayOutcome outcome_of(const std::string& path, const ReplayOptions& options, int threads,
                         const Interruption& interruption, const PlanBook& known) {
  ReplayOutcome outcome;
  outcome.found = known;
  try {
    outcome.file = replayed(path, options, threads, interruption, outcome.found);
  } catch (const formats::Error& error) {
    outcome.error = error.what();
  }
  return outcome;
}

/// Says what became of recordings, one after the other.
class Report {
 public:
  explicit Report(const ReplayOptions& options) : options_(options) {}

  void add(ReplayOutcome outcome) {
    ++recordings_;
    found_.add_unknown(outcome.found);
    if (!outcome.file) {
      has_failed_ = true;
      say(outcome.error);
      return;
    }
    files_.push_back(std::move(*outcome.file));
    if (options_.json) return;
    print_calls(std::cout, files_.back());
    print_summary(std::cout, files_.back());
  }

  void print_json() const {
    if (!options_.json) return;
    if (recordings_ == 1) {
      if (!files_.empty()) tools::print_json(to_json(files_.front()));
      return;
    }
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const ReplayedFile& file : files_) list.push_back(to_json(file));
    tools::print_json({{"files", std::move(list)}});
  }

  /// After the last one; the exit status.
  int finish(const PlanBook& known) {
    print_json();
    if (!options_.report.empty()) formats::write_file(options_.report, replay_page(files_));
    if (!options_.book.empty()) {
      found_.add_unknown(known);
      write_plan_book(options_.book, found_);
    }
    if (has_failed_) return exit_bad_input;
    const bool differs = std::ranges::any_of(
        files_, [](const ReplayedFile& file) { return file.replay.summary.differs > 0; });
    return differs ? exit_mismatch : 0;
  }

 private:
  const ReplayOptions& options_;
  std::vector<ReplayedFile> files_;
  std::size_t recordings_ = 0;
  PlanBook found_;
  bool has_failed_ = false;
};

/// How a call of a recording was computed.
emulator::replay::CallResult explained(const Recording& recording, std::size_t call, PlanBook& book,
                                       const ReplayOptions& options) {
  emulator::replay::Context context;
  context.flags = &recording.metadata;
  context.plans = &book;
  context.threads = formats::thread_count(options.threads);
  return emulator::replay::replay_call(recording.calls[call], context);
}

/// Two recordings: status 1 where equal operands gave unequal results.
int compare_recordings(const ReplayOptions& options, PlanBook& book) {
  if (options.files.size() != 1)
    throw formats::Error("--against", "compares one recording with another, not " +
                                          std::to_string(options.files.size()));
  const Recording a = emulator::replay::read_recording(options.files.front());
  const Recording b = emulator::replay::read_recording(options.against);
  ComparedFiles files{
      options.files.front(), options.against, emulator::replay::compare(a, b), {}, {}, {}};
  if (files.comparison.first) {
    files.of_a = explained(a, files.comparison.first->call_a, book, options);
    files.of_b = explained(b, files.comparison.first->call_b, book, options);
    files.difference =
        emulator::replay::difference_of(a, b, *files.comparison.first, files.of_a, files.of_b);
  }
  if (options.json) {
    print_json(to_json(files));
  } else {
    print_comparison(std::cout, files);
  }
  return files.comparison.first ? exit_mismatch : 0;
}

int report_all(const ReplayOptions& options, const PlanBook& known,
               const std::vector<nlohmann::ordered_json>& outcomes) {
  Report report(options);
  for (const nlohmann::ordered_json& outcome : outcomes)
    report.add(of_kept_results("replay", [&] { return replay_outcome_of(outcome); }));
  return report.finish(known);
}

int replay_command(const ReplayOptions& options) {
  const Interruption interruption;
  PlanBook known;
  if (!options.book.empty()) read_plan_book(options.book, known);
  if (options.files.front() == "merge")
    return report_all(options, known,
                      merged_results_of("replay", std::span(options.files).subspan(1)));
  if (!options.against.empty()) {
    known.search_seconds = options.search_seconds;
    known.interrupted = [&] { return interruption.asked_for(); };
    return compare_recordings(options, known);
  }
  if (is_divided(options.division, options.files.size())) {
    const int threads = threads_of_process(options.threads);
    const auto outcomes = divide(
        options.division,
        {.description = {"replay",
                         options.files,
                         {{"search_limit", options.search_seconds}, {"book", plans_json(known)}}},
         .work =
             [&](std::size_t i) {
               const ReplayOutcome outcome =
                   outcome_of(options.files[i], options, threads, interruption, known);
               interruption.check();
               return to_json(outcome);
             }},
        interruption);
    return outcomes ? report_all(options, known, *outcomes) : 0;
  }
  Report report(options);
  for (const std::string& path : options.files) {
    report.add(outcome_of(path, options, options.threads, interruption, known));
    if (!interruption.asked_for()) continue;
    report.print_json();
    interruption.check(": the calls from there on were not replayed");
  }
  return report.finish(known);
}

}  // namespace

void add_replay(CLI::App& app, int& status) {
  CLI::App* command =
      app.add_subcommand("replay", "Compute every operator of a recorded program again");
  const auto options = std::make_shared<ReplayOptions>();
  command
      ->add_option(
          "RECORDING", options->files,
          "Recordings of programs, as tools/scripts/record_program.py makes them; or the word merge and the parts that --part made")
      ->required();
  command->add_option("--report", options->report, "Write the same as a page of HTML");
  command->add_option(
      "--book", options->book,
      "Plans of products by their shapes: read where it is there, and written; each recording begins with what was read");
  command->add_option("--against", options->against,
                      "Another recording of the program: the first operator whose results differ");
  command
      ->add_option("--search-limit", options->search_seconds,
                   "Seconds that the search for a product's plan may take (default 20)")
      ->type_name("SECONDS")
      ->check(CLI::Range(0.0, 1e9));
  add_threads_option(*command, options->threads);
  add_division_options(*command, options->division);
  command->add_flag("--json", options->json, "Print JSON");
  command->footer(
      "Exit status: 0 all modelled calls exact, 1 one differs, 2 a file that cannot be replayed (the others are), 130 interrupted.\n"
      "Example: guardbit replay tests/golden/operators/pointwise.safetensors");
  command->callback([options, command, &status] {
    if (options->files.front() == "merge")
      refuse_unread(*command, {"--against", "--search-limit", "--threads", "--part", "--results"},
                    "without merge");
    if (!options->division.part.empty())
      refuse_unread(*command, {"--against", "--report", "--json"},
                    "without --part: 'guardbit replay merge' takes them");
    status = replay_command(*options);
  });
}

}  // namespace guardbit::tools
