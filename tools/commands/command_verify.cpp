#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "emulator/capture/capture.hpp"
#include "emulator/engine/engines.hpp"
#include "formats/support/error.hpp"
#include "formats/support/printable.hpp"
#include "tools/commands/commands.hpp"
#include "tools/console/counted.hpp"
#include "tools/console/elapsed.hpp"
#include "tools/console/interruption.hpp"
#include "tools/console/print_json.hpp"
#include "tools/console/terminal.hpp"
#include "tools/console/threads_option.hpp"
#include "tools/products/spec_file.hpp"
#include "tools/products/verify_capture.hpp"
#include "tools/products/verify_report.hpp"

namespace guardbit::tools {

namespace {

constexpr int exit_mismatch = 1;
constexpr int exit_error = 2;

struct VerifyOptions {
  std::vector<std::string> files;
  VerifySettings how;
  bool json = false;
  std::int64_t execution = -1;
  int row = 0, column = 0;
  std::vector<std::string> specs;

  bool one_element() const { return execution >= 0; }
};

void check_range(const std::string& path, const char* what, std::int64_t value,
                 std::int64_t count) {
  if (value >= 0 && value < count) return;
  throw formats::Error(
      formats::printable(path),
      std::string(what) + " " + std::to_string(value) + " is out of range",
      count == 0 ? "none, the capture is empty" : "0 to " + std::to_string(count - 1));
}

/// Executes and reports the one element that was asked for.
void verify_element(const VerifyOptions& options, const std::string& path, VerifyReport& report) {
  const emulator::Capture capture = emulator::read_capture(path);
  const emulator::Engine& engine =
      emulator::require_engine(options.how.engine, capture.instruction);
  const emulator::MatrixBatch& all = capture.operands.batch;
  check_range(path, "execution", options.execution, all.count);
  check_range(path, "row", options.row, all.shape.m);
  check_range(path, "column", options.column, all.shape.n);
  emulator::MatrixBatch batch = emulator::part_of(capture.instruction, all, options.execution, 1);
  const auto width = static_cast<std::size_t>(formats::container_bits(capture.instruction.d) / 8);
  std::vector<std::byte> results(static_cast<std::size_t>(batch.shape.m) *
                                 static_cast<std::size_t>(batch.shape.n) * width);
  batch.d = {results.data(), static_cast<int>(width)};
  emulator::run_batch(engine, capture.instruction, batch, 1);
  const emulator::ConstCodes codes{results.data(), static_cast<int>(width), 0};
  const std::uint64_t got = codes[std::int64_t{options.row} * batch.shape.n + options.column];
  report.elements.push_back(report_element(
      capture, {options.execution, options.row, options.column}, got, options.how.engine));
  report.files.push_back({path, std::string(std::string_view(capture.instruction.name)),
                          capture.arch, std::string(engine.name), 1,
                          report.elements.back().equal ? 0 : 1});
}

void say(const std::string& text) {
  std::cout.flush();
  std::cerr << "guardbit: " << formats::printable(text, 1000) << '\n';
}

void verify_all(const VerifyOptions& options, const Interruption& interruption,
                VerifyReport& report) {
  ProgressLine progress("verifying", options.files.size());
  const auto interrupted = [&] { return interruption.asked_for(); };
  for (std::size_t i = 0; i < options.files.size(); ++i) {
    const std::string& path = options.files[i];
    const std::size_t done = report.files.size();
    progress.update(i);
    try {
      if (interruption.asked_for() || !verify_file(path, options.how, interrupted, report)) {
        report.skipped.assign(options.files.begin() + static_cast<std::ptrdiff_t>(i),
                              options.files.end());
        return;
      }
    } catch (const formats::Error& error) {
      report.failed.push_back({path, error.what()});
      say(error.what());
    }
    for (const std::string& remark : report.remarks) say(remark);
    report.remarks.clear();
    if (!options.json && report.files.size() != done)
      print_file(std::cout, report.files.back(), done == 0);
  }
}

void check_engine_name(const std::string& name) {
  std::string names = "auto";
  for (const emulator::Engine& engine : emulator::engines()) {
    if (engine.name == name) return;
    names += ", " + std::string(engine.name);
  }
  if (name != "auto")
    throw formats::Error("--engine", "unknown engine " + formats::in_quotes(name), names);
}

int verify(const VerifyOptions& options) {
  check_engine_name(options.how.engine);
  load_specs(options.specs);
  if (!options.how.plan.empty() && options.one_element())
    throw formats::Error("--plan", "does not go with --execution");
  if (options.one_element() && options.files.size() != 1) {
    throw formats::Error("--execution", "explains an element of one capture, not of " +
                                            std::to_string(options.files.size()));
  }
  if (options.how.predict && (!options.how.plan.empty() || options.one_element()))
    throw formats::Error("--predict", "does not go with --plan or --execution");
  VerifyReport report;
  const auto start = std::chrono::steady_clock::now();
  const Interruption interruption;
  if (options.one_element()) {
    verify_element(options, options.files.front(), report);
  } else {
    verify_all(options, interruption, report);
  }
  report.seconds = seconds_since(start);
  if (options.json) {
    print_json(to_json(report));
  } else {
    print_summary(std::cout, report);
  }
  if (!report.skipped.empty())
    interruption.check(": " + counted(std::ssize(report.skipped), "file") + " skipped, from " +
                       formats::printable(report.skipped.front(), 1000) + " on");
  if (!report.failed.empty()) return exit_error;
  const bool all_predicted =
      std::all_of(report.predictions.begin(), report.predictions.end(),
                  [](const Prediction& prediction) { return prediction.predicted; });
  return report.mismatches() == 0 && all_predicted ? 0 : exit_mismatch;
}

}  // namespace

void add_verify(CLI::App& app, int& status) {
  CLI::App* command =
      app.add_subcommand("verify", "Execute recorded instructions again and compare every bit");
  const auto options = std::make_shared<VerifyOptions>();
  command
      ->add_option(
          "CAPTURE", options->files,
          "Capture files of kind instruction, dot or function, or with --plan of kind gemm or conv2d")
      ->required();
  command->add_option("--plan", options->how.plan,
                      "The files are of kind gemm or conv2d: execute them by this plan");
  command->add_flag(
      "--predict", options->how.predict,
      "The files are of kind gemm: execute them by the plan that the atlas gives for the "
      "recorded call, without looking at D");
  add_spec_option(*command, options->specs);
  command->add_option("--engine", options->how.engine,
                      "Engine that computes (default: the fastest that can)");
  command->add_option("--max-report", options->how.most_reports,
                      "Mismatches to explain, over all files (default 3)");
  add_threads_option(*command, options->how.threads);
  CLI::Option* const execution =
      command->add_option("--execution", options->execution,
                          "Explain one element of one capture, equal or not: its execution");
  execution->check(CLI::NonNegativeNumber);
  command->add_option("--row", options->row, "... its row of D (default 0)")->needs(execution);
  command->add_option("--column", options->column, "... its column of D (default 0)")
      ->needs(execution);
  command->add_flag("--json", options->json, "Print JSON");
  command->footer(
      "Exit status: 0 all equal, 1 a mismatch, 2 a file that cannot be verified (the others are), 130 interrupted.\n"
      "Example: guardbit verify tests/golden/mma.sync/*.safetensors");
  command->callback([options, &status] { status = verify(*options); });
}

}  // namespace guardbit::tools
