#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "emulator/replay/recording.hpp"
#include "emulator/replay/replay.hpp"
#include "formats/files/atomic_output.hpp"
#include "formats/support/error.hpp"
#include "formats/support/printable.hpp"
#include "tools/commands/commands.hpp"
#include "tools/console/interruption.hpp"
#include "tools/console/print_json.hpp"
#include "tools/console/terminal.hpp"
#include "tools/console/threads_option.hpp"
#include "tools/replay/replay_report.hpp"

namespace guardbit::tools {

namespace {

constexpr int exit_mismatch = 1;
constexpr int exit_error = 2;

struct ReplayOptions {
  std::vector<std::string> files;
  bool json = false;
  int threads = 0;
};

void say(const std::string& text) {
  std::cout.flush();
  std::cerr << "guardbit: " << formats::printable(text, 1000) << '\n';
}

ReplayedFile replayed(const std::string& path, const ReplayOptions& options,
                      const Interruption& interruption) {
  const emulator::replay::Recording recording = emulator::replay::read_recording(path);
  emulator::replay::require_measured_library(recording);
  ProgressLine progress("replaying " + formats::printable(path), recording.calls.size());
  emulator::replay::ReplaySettings settings;
  settings.threads = options.threads;
  settings.interrupted = [&] { return interruption.asked_for(); };
  settings.progress = [&](std::size_t done) { progress.update(done); };
  ReplayedFile file{
      .path = path, .ops = {}, .replay = emulator::replay::replay(recording, settings)};
  for (const auto& call : recording.calls) file.ops.push_back(call.op);
  return file;
}

int replay_command(const ReplayOptions& options) {
  const Interruption interruption;
  std::vector<ReplayedFile> files;
  bool has_failed = false, has_stopped = false;
  for (const std::string& path : options.files) {
    try {
      files.push_back(replayed(path, options, interruption));
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
  if (options.json) {
    if (options.files.size() == 1) {
      if (!files.empty()) print_json(to_json(files.front()));
    } else {
      nlohmann::ordered_json list = nlohmann::ordered_json::array();
      for (const ReplayedFile& file : files) list.push_back(to_json(file));
      print_json({{"files", std::move(list)}});
    }
  }
  if (has_stopped) interruption.check(": the calls from there on were not replayed");
  if (has_failed) return exit_error;
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
  add_threads_option(*command, options->threads);
  command->add_flag("--json", options->json, "Print JSON");
  command->footer(
      "Exit status: 0 all modelled calls exact, 1 one differs, 2 a file that cannot be replayed (the others are), 130 interrupted.\n"
      "Example: guardbit replay tests/golden/operators/pointwise.safetensors");
  command->callback([options, &status] { status = replay_command(*options); });
}

}  // namespace guardbit::tools
