#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
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
#include "tools/console/exit_status.hpp"
#include "tools/console/interruption.hpp"
#include "tools/console/print_json.hpp"
#include "tools/console/terminal.hpp"
#include "tools/console/threads_option.hpp"
#include "tools/products/plan_book_file.hpp"
#include "tools/products/replay_report.hpp"
#include "tools/report/replay_page.hpp"

namespace guardbit::tools {

namespace {

struct ReplayOptions {
  std::vector<std::string> files;
  std::string report, book, against;
  double search_seconds = 20;
  bool json = false;
  int threads = 0;
};

using emulator::replay::Recording;

ReplayedFile replayed(const std::string& path, const ReplayOptions& options,
                      const Interruption& interruption, emulator::replay::PlanBook& book) {
  const Recording recording = emulator::replay::read_recording(path);
  emulator::replay::require_measured_library(recording);
  ProgressLine progress("replaying " + formats::printable(path), recording.calls.size());
  emulator::replay::ReplaySettings settings;
  settings.threads = options.threads;
  settings.plans = &book;
  settings.interrupted = [&] { return interruption.asked_for(); };
  settings.progress = [&](std::size_t done) { progress.update(done); };
  ReplayedFile file{
      .path = path, .ops = {}, .replay = emulator::replay::replay(recording, settings)};
  for (const auto& call : recording.calls) file.ops.push_back(call.op);
  return file;
}

void print_files(const ReplayOptions& options, const std::vector<ReplayedFile>& files) {
  if (options.files.size() == 1) {
    if (!files.empty()) print_json(to_json(files.front()));
    return;
  }
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const ReplayedFile& file : files) list.push_back(to_json(file));
  print_json({{"files", std::move(list)}});
}

/// How a call of a recording was computed.
emulator::replay::CallResult explained(const Recording& recording, std::size_t call,
                                       emulator::replay::PlanBook& book,
                                       const ReplayOptions& options) {
  emulator::replay::Context context;
  context.flags = &recording.metadata;
  context.plans = &book;
  context.threads = formats::thread_count(options.threads);
  return emulator::replay::replay_call(recording.calls[call], context);
}

/// Two recordings: status 1 where equal operands gave unequal results.
int compare_recordings(const ReplayOptions& options, emulator::replay::PlanBook& book) {
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

int replay_command(const ReplayOptions& options) {
  const Interruption interruption;
  emulator::replay::PlanBook book;
  book.search_seconds = options.search_seconds;
  book.interrupted = [&] { return interruption.asked_for(); };
  if (!options.book.empty()) read_plan_book(options.book, book);
  if (!options.against.empty()) return compare_recordings(options, book);
  std::vector<ReplayedFile> files;
  bool has_failed = false, has_stopped = false;
  for (const std::string& path : options.files) {
    try {
      files.push_back(replayed(path, options, interruption, book));
    } catch (const formats::Error& error) {
      has_failed = true;
      say(error.what());
      continue;
    }
    if (!options.json) {
      print_calls(std::cout, files.back());
      print_summary(std::cout, files.back());
    }
    has_stopped = files.back().replay.stopped || interruption.asked_for();
    if (has_stopped) break;
  }
  if (options.json) print_files(options, files);
  if (has_stopped) interruption.check(": the calls from there on were not replayed");
  if (!options.report.empty()) formats::write_file(options.report, replay_page(files));
  if (!options.book.empty()) write_plan_book(options.book, book);
  if (has_failed) return exit_bad_input;
  const bool differs = std::ranges::any_of(
      files, [](const ReplayedFile& file) { return file.replay.summary.differs > 0; });
  return differs ? exit_mismatch : 0;
}

}  // namespace

void add_replay(CLI::App& app, int& status) {
  CLI::App* command =
      app.add_subcommand("replay", "Compute every operator of a recorded program again");
  const auto options = std::make_shared<ReplayOptions>();
  command
      ->add_option("RECORDING", options->files,
                   "Recordings of programs, as tools/scripts/record_program.py makes them")
      ->required();
  command->add_option("--report", options->report, "Write the same as a page of HTML");
  command->add_option("--book", options->book,
                      "Plans of products by their shapes: read where it is there, and written");
  command->add_option("--against", options->against,
                      "Another recording of the program: the first operator whose results differ");
  command
      ->add_option("--search-limit", options->search_seconds,
                   "Seconds that the search for a product's plan may take (default 20)")
      ->type_name("SECONDS")
      ->check(CLI::Range(0.0, 1e9));
  add_threads_option(*command, options->threads);
  command->add_flag("--json", options->json, "Print JSON");
  command->footer(
      "Exit status: 0 all modelled calls exact, 1 one differs, 2 a file that cannot be replayed (the others are), 130 interrupted.\n"
      "Example: guardbit replay tests/golden/operators/pointwise.safetensors");
  command->callback([options, &status] { status = replay_command(*options); });
}

}  // namespace guardbit::tools
