#include <CLI/CLI.hpp>
#include <bit>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "experiments/harness/fingerprint.hpp"
#include "formats/files/atomic_output.hpp"
#include "formats/support/error.hpp"
#include "tools/console/interruption.hpp"
#include "tools/console/print_json.hpp"
#include "tools/console/terminal.hpp"
#include "tools/console/threads_option.hpp"
#include "tools/gpu/gpu_commands.hpp"
#include "tools/gpu/provenance.hpp"
#include "tools/gpu/training/device_trainer.hpp"
#include "tools/train/train_config.hpp"

namespace guardbit::tools {

namespace {

using experiments::fingerprint_text;
using experiments::training::Examples;
using experiments::training::Parameter;
using experiments::training::PrecisionRecipe;
using experiments::training::StepRecord;
using experiments::training::Trainer;
using experiments::training::TrainingRules;
using nlohmann::ordered_json;
using training::DeviceTrainer;

struct Options {
  std::string config, output;
  std::int64_t steps = 100;
  int threads = 0;
  bool json = false;
};

/// Where the weights of the two first differ; nothing where they are the same bits.
std::optional<std::string> first_difference(Trainer& model, const DeviceTrainer& device) {
  const std::vector<std::vector<float>> weights = device.weights();
  std::size_t at = 0;
  for (const Parameter* p : model.parameters()) {
    const std::vector<float>& others = weights[at++];
    for (std::size_t i = 0; i < others.size(); ++i) {
      const float x = p->value.values[i];
      if (std::bit_cast<std::uint32_t>(x) == std::bit_cast<std::uint32_t>(others[i])) continue;
      std::ostringstream out;
      out << std::hexfloat << p->name << '[' << i << "]: " << x << " here, " << others[i]
          << " on the device";
      return out.str();
    }
  }
  return std::nullopt;
}

ordered_json to_json(const StepRecord& record, std::uint64_t hash) {
  return {{"step", record.step},
          {"loss", record.loss},
          {"loss_bits", std::bit_cast<std::uint32_t>(record.loss)},
          {"scale", record.scale},
          {"skipped", record.skipped},
          {"weights_hash", fingerprint_text(hash)}};
}

/// Both trainings side by side until they differ, the steps are done, or Ctrl-C.
ordered_json compare(const TrainingRules& rules, const Examples& examples, const Options& options,
                     const Interruption& interruption) {
  Trainer model(rules, examples, options.threads, options.config);
  DeviceTrainer device(rules, examples, options.config);
  ordered_json out = {{"recipe", rules.recipe.name},
                      {"plan", emulator::to_text(rules.recipe.plans.front())},
                      {"initial_weights_hash", fingerprint_text(model.weights_hash())}};
  ordered_json steps = ordered_json::array();
  std::optional<std::string> difference = first_difference(model, device);
  ProgressLine progress("gpu train " + rules.recipe.name, static_cast<std::size_t>(options.steps));
  while (!difference && static_cast<std::int64_t>(steps.size()) < options.steps &&
         !interruption.asked_for()) {
    const StepRecord here = model.step(), there = device.step();
    difference = first_difference(model, device);
    if (!difference && !(here == there))
      difference = "the step's loss, scale or decision: loss " + std::to_string(here.loss) +
                   " here, " + std::to_string(there.loss) + " on the device";
    steps.push_back(to_json(here, model.weights_hash()));
    progress.update(steps.size());
  }
  out["steps_equal"] = steps.size() - (difference && !steps.empty() ? 1 : 0);
  out["difference"] = difference ? ordered_json(*difference) : ordered_json(nullptr);
  out["steps"] = std::move(steps);
  return out;
}

int train(const Options& options) {
  TrainConfig config = read_train_config(options.config);
  const experiments::training::Dataset data = load_data(config);
  const gpu::Device device = gpu::require_device();
  const Interruption interruption;
  ordered_json out = provenance(device);
  out["date"] = today();
  out["config"] = config.text;
  out["runs"] = ordered_json::array();
  bool differ = false;
  for (const PrecisionRecipe& recipe : config.recipes) {
    TrainingRules rules{config.model, config.optimizer, training::on_mma_sync(recipe), config.batch,
                        config.seed};
    ordered_json run = compare(rules, data.training, options, interruption);
    if (!options.json) {
      const ordered_json& steps = run["steps"];
      std::cout << recipe.name << ": " << run["steps_equal"] << " of " << steps.size()
                << " steps equal";
      if (!steps.empty())
        std::cout << ", loss " << steps.front()["loss"] << " to " << steps.back()["loss"]
                  << ", weights " << steps.back()["weights_hash"].get<std::string>();
      if (!run["difference"].is_null())
        std::cout << "\n  first difference: " << run["difference"].get<std::string>();
      std::cout << '\n';
    }
    differ |= !run["difference"].is_null();
    out["runs"].push_back(std::move(run));
  }
  if (!options.output.empty()) {
    formats::write_file(options.output, out.dump(1) + "\n");
  }
  if (options.json) print_json(out);
  interruption.check();
  return differ ? 1 : 0;
}

}  // namespace

void add_gpu_train(CLI::App& gpu, int& status) {
  const auto options = std::make_shared<Options>();
  CLI::App* const command = gpu.add_subcommand(
      "train",
      "Train a network on this machine's tensor core and on the model of it, step by step");
  command
      ->add_option(
          "CONFIG", options->config,
          "What to train, as for 'guardbit train': cnn or mlp; recipes fp16_amp, fp16_amp_unscaled, bf16_amp, tf32")
      ->required();
  command->add_option("--steps", options->steps, "Steps of each recipe")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  add_threads_option(*command, options->threads);
  command->add_option("-o,--output", options->output,
                      "JSON file of every step's loss, loss scale and hash of the weights");
  command->add_flag("--json", options->json, "Print that JSON");
  command->footer(
      "The device multiplies by mma.sync, one chain along K; everything else is the same IEEE\n"
      "operations in the same order on both sides. Exits with 1 at the first bit that differs.\n"
      "Example: guardbit gpu train docs/training/cnn.toml --steps 100 -o training.json");
  command->callback([options, &status] { status = train(*options); });
}

}  // namespace guardbit::tools
