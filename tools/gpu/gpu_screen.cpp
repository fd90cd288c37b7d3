#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "formats/files/atomic_output.hpp"
#include "formats/support/error.hpp"
#include "formats/support/printable.hpp"
#include "gpu/cuda/device/device.hpp"
#include "gpu/cuda/function/ptx_validation.hpp"
#include "gpu/cuda/screening/device_screen.hpp"
#include "gpu/validation/device_capture.hpp"
#include "tools/console/division/part.hpp"
#include "tools/console/exit_status.hpp"
#include "tools/console/interruption.hpp"
#include "tools/console/print_json.hpp"
#include "tools/console/terminal.hpp"
#include "tools/gpu/devices_option.hpp"
#include "tools/gpu/gpu_commands.hpp"
#include "tools/report/screen_verdict.hpp"

namespace guardbit::tools {

namespace {

using formats::Error;
using gpu::HostDevice;

/// As a launcher calls this host, else as it calls itself.
std::string host_name() {
  for (const char* const variable : {"SLURMD_NODENAME", "NODE_NAME"})
    if (const char* const name = std::getenv(variable); name != nullptr && *name != '\0')
      return name;
  char name[256] = {};
  return gethostname(name, sizeof name - 1) == 0 ? name : "unknown";
}

struct Options {
  double seconds = 60;
  std::string devices = "all", only, output, part = "1/1", node = host_name();
  std::vector<std::string> tests = {"matrix", "functions", "products", "memory"};
  std::uint64_t seed = 1;
  bool json = false;
};

std::string now_text() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[32] = {};
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

gpu::ScreenInputs make_inputs(const Options& options) {
  const auto wants = [&](const char* test) {
    return std::find(options.tests.begin(), options.tests.end(), test) != options.tests.end();
  };
  gpu::ScreenInputs inputs;
  inputs.memory = wants("memory");
  if (wants("matrix")) {
    std::vector<const gpu::TensorCoreInstruction*> instructions;
    for (const gpu::TensorCoreInstruction& x : gpu::tensor_core_instructions())
      if (gpu::capture_stem(x).find(options.only) != std::string::npos) instructions.push_back(&x);
    inputs.matrix = gpu::make_screen_set(instructions, options.seed);
  }
  if (wants("functions")) {
    std::vector<std::string> names;
    for (const std::string& name : gpu::modelled_instructions())
      if (name.find(options.only) != std::string::npos) names.push_back(name);
    inputs.functions = gpu::make_function_cases(names);
    if (options.only.empty()) inputs.functions.push_back(gpu::make_integer_case());
  }
  if (wants("products"))
    for (int kind = 0; kind < gpu::product_kinds(); ++kind)
      inputs.products.push_back(gpu::make_product_case(kind));
  if (!options.only.empty() && inputs.matrix.cases.empty() && inputs.functions.empty())
    throw Error("--only", "no instruction's name holds " + formats::in_quotes(options.only),
                "see 'guardbit gpu list'");
  return inputs;
}

nlohmann::ordered_json coverage_json(const gpu::ScreenInputs& inputs) {
  return {{"matrix_instructions", inputs.matrix.cases.size()},
          {"functions", inputs.functions.size()},
          {"products", inputs.products.size()},
          {"outputs_observed", inputs.matrix.observed},
          {"events", inputs.matrix.events},
          {"possible_events", inputs.matrix.possible_events},
          {"never", inputs.matrix.never}};
}

std::vector<gpu::DeviceReport> screen_all(const std::vector<HostDevice>& devices,
                                          const gpu::ScreenInputs& inputs, double seconds,
                                          const Interruption& interruption) {
  std::vector<gpu::DeviceReport> reports(devices.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < devices.size(); ++i)
    threads.emplace_back([&, i] {
      reports[i] = gpu::screen_device(devices[i], inputs, seconds,
                                      [&](double) { return !interruption.asked_for(); });
    });
  for (std::thread& thread : threads) thread.join();
  return reports;
}

int status_of(const std::vector<gpu::DeviceReport>& reports) {
  int status = 0;
  for (const gpu::DeviceReport& report : reports) {
    const gpu::Health verdict = gpu::verdict_of(report);
    if (verdict == gpu::Health::faulty) return exit_mismatch;
    if (verdict == gpu::Health::untested) status = exit_bad_input;
  }
  return status;
}

int screen(const Options& options) {
  ScreenRun run;
  const Part part = part_of(options.part);
  run.part = part.part;
  run.parts = part.parts;
  run.host = options.node;
  run.time = now_text();
  run.seed = options.seed;
  run.seconds = options.seconds;
  std::optional<formats::AtomicOutput> file;
  if (!options.output.empty()) file.emplace(options.output);  // fails before the work
  const auto write = [&](const nlohmann::ordered_json& verdicts) {
    if (!file) return;
    file->write(verdicts.dump(1) + "\n");
    file->commit();
  };
  const Interruption interruption;
  std::vector<gpu::DeviceReport> reports;
  std::string driver;
  try {
    const std::vector<HostDevice> devices = chosen_devices(options.devices, gpu::devices_of_host());
    driver = gpu::find_device().driver;
    gpu::ScreenInputs inputs;
    {
      StatusLine line;
      line.show("computing what the GPUs must give");
      inputs = make_inputs(options);
      run.coverage = coverage_json(inputs);
      line.show("screening");
      reports = screen_all(devices, inputs, options.seconds, interruption);
    }
  } catch (const Error& error) {
    run.failure = error.what();
    write(verdicts_of(run, {}));  // says which host could not be tested
    throw;
  }
  for (gpu::DeviceReport& report : reports) report.driver = driver;
  const nlohmann::ordered_json verdicts = verdicts_of(run, reports);
  write(verdicts);
  if (options.json)
    print_json(verdicts);
  else
    for (const gpu::DeviceReport& report : reports) std::cout << text_of(report);
  interruption.check();
  return status_of(reports);
}

}  // namespace

void add_gpu_screen(CLI::App& gpu, int& status) {
  const auto options = std::make_shared<Options>();
  CLI::App* const command = gpu.add_subcommand(
      "screen", "Find faulty GPUs: compare all that they compute with what the models give");
  command
      ->add_option("--seconds", options->seconds,
                   "How long to screen; every test runs once at least")
      ->check(CLI::Range(0.0, 1e6))
      ->capture_default_str();
  add_devices_option(*command, options->devices);
  command
      ->add_option(
          "--tests", options->tests,
          "Which tests: matrix instructions, functions and integer operations, large products by cuBLAS, memory")
      ->delimiter(',')
      ->check(CLI::IsMember({"matrix", "functions", "products", "memory"}))
      ->capture_default_str();
  command->add_option("--only", options->only,
                      "Only instructions and functions whose name holds this");
  command->add_option("--seed", options->seed, "Seed of the operands of matrix instructions")
      ->capture_default_str();
  command
      ->add_option(
          "--part", options->part,
          "Which of how many screenings this is, as 3/8: 'guardbit screen merge' names those that are missing")
      ->capture_default_str();
  command->add_option(
      "-o,--output", options->output,
      "Write the verdicts as JSON to this file, also where nothing could be tested");
  command->add_flag("--json", options->json, "Print the verdicts as JSON");
  command->footer(
      "Exit status 0 where all GPUs are healthy, 1 where one is faulty, 2 where one could not be tested.\n"
      "Example: guardbit gpu screen --seconds 60 -o verdict.json\n"
      "Example: guardbit gpu screen --seconds 10 --devices 0,1 --tests matrix,products");
  command->callback([options, &status] { status = screen(*options); });
}

}  // namespace guardbit::tools
