#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "formats/support/error.hpp"
#include "formats/support/suggestions.hpp"
#include "gpu/cuda/device/device.hpp"
#include "gpu/cuda/tensor_core/tensor_core.hpp"
#include "gpu/cuda/validation/checks.hpp"
#include "gpu/inputs/inputs.hpp"
#include "gpu/operands/sass_table.hpp"
#include "gpu/validation/device_capture.hpp"
#include "tools/gpu/gpu_commands.hpp"
#include "tools/gpu/gpu_functions.hpp"

namespace guardbit::tools {

namespace {

using namespace gpu;

struct Options {
  std::string name, output;  // one instruction into one file, or
  std::string folder;        // many into a folder
  std::string only;
  std::string sass;
  std::string function;
  std::uint32_t inputs = 4096;
  std::uint64_t seed = 20261120;
  bool mixed = false;
  bool refresh = false;
  std::vector<std::string> replays;
};

/// Widest N that is written: wider ones are only compared with their plain form.
constexpr int widest_written = 32;

std::string join(const std::vector<std::string>& words, const char* separator) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : separator) + word;
  return text;
}

/// Executions of one-family inputs: each family once to eight times, less where a tile is large.
int execution_count(const TensorCoreInstruction& instruction) {
  const auto count = static_cast<int>(families(instruction).size());
  if (instruction.n > 8 && instruction.m == 64) return count;
  const bool variant = !instruction.variant.empty();
  if (!is_integer(instruction.a)) return count * (instruction.m == 64 && variant ? 1 : 2);
  return count * (instruction.m == 64 ? (variant ? 2 : 4) : 8);
}

/// Executions of mixed rows: as many as give every family a row, but two where an output row is
/// long.
int mixed_execution_count(const TensorCoreInstruction& instruction) {
  const auto count = static_cast<int>(mixed_families(instruction).size());
  const int enough = (count + instruction.m - 1) / instruction.m;
  return instruction.n > 16 ? std::min(enough, 2) : enough;
}

std::string capture_path(const Options& options, const TensorCoreInstruction& instruction) {
  if (!options.output.empty()) return options.output;
  return options.folder + "/" + capture_stem(instruction) + ".safetensors";
}

class Recorder {
 public:
  Recorder(const Options& options, const gpu::Device& device)
      : options_(options), sass_(read_sass(options.sass)) {
    metadata_ = {
        {"device", device.name}, {"cuda", device.toolkit}, {"seed", std::to_string(options.seed)}};
    if (!device.driver.empty()) metadata_["driver"] = device.driver;
  }

  void record(const TensorCoreInstruction& instruction) {
    Batch batch =
        options_.mixed
            ? make_mixed_rows(instruction, mixed_execution_count(instruction), options_.seed)
            : make_inputs(instruction, execution_count(instruction), options_.seed);
    run_on_tensor_core(instruction, batch);
    for (const std::string& breach : check_recording(instruction, batch, options_.seed))
      report(breach);
    if (instruction.n > widest_written && options_.output.empty()) return;
    auto metadata = metadata_;
    if (const std::string sass = sass_of(sass_, instruction); !sass.empty())
      metadata["sass"] = sass;
    const auto names = families(instruction);
    metadata["families"] = options_.mixed ? std::string(mixed_kind(instruction))
                                          : join({names.begin(), names.end()}, ",");
    write_capture(capture_path(options_, instruction), instruction, batch, metadata);
  }

  void replay(const std::string& path) {
    const std::string stem = std::filesystem::path(path).stem().string();
    for (const TensorCoreInstruction& instruction : tensor_core_instructions()) {
      if (stem != capture_stem(instruction) && stem != capture_stem(instruction) + ".tiny")
        continue;
      Batch batch = read_capture(path, instruction);
      const std::vector<std::uint64_t> recorded = batch.d;
      run_on_tensor_core(instruction, batch);
      int differ = 0;
      for (std::size_t i = 0; i < recorded.size(); ++i) differ += recorded[i] != batch.d[i];
      if (differ != 0)
        report(path + ": " + std::to_string(differ) + " of " + std::to_string(recorded.size()) +
               " results differ from this device's");
      return;
    }
    throw formats::Error(path, "is named after no instruction of this program");
  }

  int breaches() const { return breaches_; }

 private:
  void report(const std::string& line) {
    ++breaches_;
    std::cout << line << '\n';
  }

  const Options& options_;
  SassTable sass_;
  std::map<std::string, std::string> metadata_;
  int breaches_ = 0;
};

/// The one instruction of that name, or of that name and variant as its capture is named.
TensorCoreInstruction require_form(const std::string& name) {
  std::vector<std::string_view> names;
  for (const TensorCoreInstruction& instruction : tensor_core_instructions()) {
    if (capture_stem(instruction) == name ||
        (instruction.name == name && instruction.variant.empty()))
      return instruction;
    names.push_back(instruction.name);
  }
  throw formats::Error("gpu record", formats::unknown_name("instruction", name, names),
                       "see 'guardbit gpu list'");
}

/// The instructions that the options ask for.
std::vector<TensorCoreInstruction> choose(const Options& options) {
  if (options.name.empty() != options.output.empty())
    throw formats::Error("gpu record", "INSTRUCTION and --output go together");
  if (!options.name.empty() && !options.folder.empty())
    throw formats::Error("gpu record", "INSTRUCTION and --into exclude each other");
  if (!options.name.empty()) return {require_form(options.name)};
  if (options.folder.empty()) {
    if (!options.replays.empty()) return {};
    throw formats::Error("gpu record", "needs INSTRUCTION and --output, --into, or --replay");
  }
  std::error_code error;
  if (!std::filesystem::is_directory(options.folder, error))
    throw formats::Error(options.folder, "is not a folder");
  std::vector<TensorCoreInstruction> instructions;
  for (const TensorCoreInstruction& instruction : tensor_core_instructions()) {
    if (capture_stem(instruction).find(options.only) == std::string::npos) continue;
    if (instruction.size_sweep && options.only.empty()) continue;
    if (options.refresh && !std::filesystem::exists(capture_path(options, instruction))) continue;
    instructions.push_back(instruction);
  }
  if (instructions.empty())
    throw formats::Error(options.folder, "no instruction is left to record");
  return instructions;
}

int run(const Options& options) {
  const auto instructions = choose(options);
  for (const TensorCoreInstruction& instruction : instructions)
    check_against_catalogue(instruction);
  Recorder recorder(options, require_device());
  for (const TensorCoreInstruction& instruction : instructions) recorder.record(instruction);
  for (const std::string& path : options.replays) recorder.replay(path);
  std::cout << "recorded " << instructions.size() << " instructions, replayed "
            << options.replays.size() << " captures, " << recorder.breaches() << " breaches\n";
  return recorder.breaches() == 0 ? 0 : 1;
}

}  // namespace

void add_gpu_record(CLI::App& gpu, int& status) {
  const auto options = std::make_shared<Options>();
  CLI::App* const command = gpu.add_subcommand(
      "record", "Record what this machine's tensor core computes, as capture files");
  command->add_option("INSTRUCTION", options->name, "One instruction; see 'guardbit gpu list'");
  command->add_option("-o,--output", options->output, "The capture file of that instruction");
  command->add_option("--function", options->function,
                      "A function of numbers instead, as ex2.approx.ftz.f32");
  command->add_option("--inputs", options->inputs, "With --function: how many")
      ->check(CLI::Range(1, 1 << 24))
      ->capture_default_str();
  command->add_option("--into", options->folder,
                      "Existing folder for the captures of all instructions instead");
  command->add_option("--only", options->only,
                      "Only instructions whose capture name contains this text");
  command->add_flag("--refresh", options->refresh,
                    "Only instructions whose capture the folder already holds");
  command->add_flag("--mixed", options->mixed,
                    "Small captures whose input family varies by row of A (the golden files)");
  command->add_option("--seed", options->seed, "Seed of the inputs")->capture_default_str();
  command->add_option("--sass", options->sass,
                      "Table from list_sass.py, to note the machine code in the captures");
  command->add_option("--replay", options->replays, "Captures to execute again and compare");
  command->footer(
      "Prints one line for each breach of what every recording must fulfil; then exits with 1.\n"
      "Example: guardbit gpu record wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 -o wgmma.safetensors\n"
      "         guardbit gpu record --function fma.rz.f32 -o fma.safetensors\n"
      "         guardbit gpu record --mixed --refresh --into tests/golden/h200/wgmma");
  command->callback([options, &status] {
    if (options->function.empty()) {
      status = run(*options);
      return;
    }
    if (options->output.empty() || !options->name.empty() || !options->folder.empty())
      throw formats::Error("--function", "needs --output, and nothing else");
    record_function(options->function, options->output, options->inputs);
  });
}

}  // namespace guardbit::tools
