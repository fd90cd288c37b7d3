// `guardbit gpu probe-questions`: tests the numbered questions of docs/NUMERICS.md 2 on this
// machine's GPU, or on a model, prints the results and can write them as JSON (docs/hardware).

#include <CLI/CLI.hpp>
#include <cstdint>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "emulator/catalogue/instruction_catalogue.hpp"
#include "formats/files/atomic_output.hpp"
#include "gpu/cuda/device/device.hpp"
#include "gpu/cuda/tensor_core/driver_translation.hpp"
#include "gpu/cuda/tensor_core/tensor_core.hpp"
#include "gpu/questions/question_results.hpp"
#include "tools/console/interruption.hpp"
#include "tools/console/terminal.hpp"
#include "tools/gpu/gpu_commands.hpp"
#include "tools/gpu/provenance.hpp"
#include "tools/gpu/questions/questions_report.hpp"

namespace guardbit::tools {

namespace {

using nlohmann::ordered_json;

struct Options {
  std::vector<std::string> ids;
  std::string output, model;
  std::uint64_t seed = 20261120;
  bool json = false;
};

/// The device or model that executes, for the head of the record.
ordered_json head_of(const Options& options, const std::optional<gpu::Device>& device) {
  ordered_json out = device ? provenance(*device) : ordered_json{{"model", options.model}};
  out["date"] = today();
  out["seed"] = options.seed;
  return out;
}

void print_end(const std::vector<gpu::QuestionResult>& questions, std::size_t asked) {
  for (const gpu::AnsweredElsewhere& question : gpu::answered_elsewhere())
    std::cout << question.id << "  " << question.text << " '" << question.command << "'\n";
  std::size_t answers = 0, undecided = 0, unlike = 0;
  const auto count = [&](std::size_t instructions, bool decided) {
    answers += instructions;
    if (!decided) undecided += instructions;
  };
  for (const gpu::QuestionResult& question : questions) {
    for (const gpu::TestResult& result : question.results)
      count(result.instructions().size(), result.decided);
    for (const gpu::Comparison& comparison : question.comparisons)
      count(1, comparison.supported() != nullptr);
    if (!question.as_model()) ++unlike;
  }
  std::cout << questions.size() << " of " << asked << " questions tested, " << answers
            << " answers, " << undecided << " undecided; " << unlike
            << " questions answered unlike the model\n";
}

int run(const Options& options) {
  gpu::check_question_ids(options.ids);
  std::optional<gpu::Device> device;
  gpu::Executors executors{gpu::run_on_tensor_core, gpu::run_translated_by_driver};
  std::string_view arch = gpu::tensor_core_instructions().front().arch;
  if (options.model.empty()) {
    device = gpu::require_device();
  } else {
    arch = emulator::require_page(options.model, "--model");
    executors = gpu::model_executors(arch);
  }
  const std::size_t asked = options.ids.empty() ? gpu::question_ids().size() : options.ids.size();
  const Interruption interruption;
  std::vector<gpu::QuestionResult> results;
  {
    ProgressLine progress("questions", asked);
    results =
        gpu::test_questions(options.ids, arch, executors, options.seed, [&](std::size_t done) {
          progress.update(done);
          return !interruption.asked_for();
        });
  }
  if (options.json || !options.output.empty()) {
    ordered_json out = head_of(options, device);
    out.update(results_json(results));
    const std::string text = out.dump(1) + "\n";
    if (options.output.empty()) {
      std::cout << text;
    } else if (!interruption.asked_for()) {
      formats::write_file(options.output, text);
    }
  }
  if (!options.json) {
    print_results(results);
    print_end(results, asked);
  }
  interruption.check();
  for (const gpu::QuestionResult& question : results)
    if (!question.as_model()) return 1;
  return 0;
}

}  // namespace

void add_gpu_probe_questions(CLI::App& gpu, int& status) {
  const auto options = std::make_shared<Options>();
  CLI::App* const command = gpu.add_subcommand(
      "probe-questions", "Test the numbered questions (docs/HARDWARE.md) on this machine");
  command->add_option("id", options->ids, "Questions to test: Q1, Q15b, ...; all without any");
  command->add_option("--model", options->model,
                      "Let the model of this machine (sm_90, sm_80, ...) answer instead");
  command->add_option("--seed", options->seed, "Seed of the random inputs")->capture_default_str();
  command->add_flag("--json", options->json, "Print JSON");
  command->add_option("-o,--output", options->output, "Also write the JSON to this file");
  command->footer(
      "Exits with 1 if an answer differs from the model's.\n"
      "Example: guardbit gpu probe-questions Q1 Q3\n"
      "Example: guardbit gpu probe-questions -o docs/hardware/h200-questions.json");
  command->callback([options, &status] { status = run(*options); });
}

}  // namespace guardbit::tools
