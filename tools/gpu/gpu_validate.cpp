#include <CLI/CLI.hpp>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "formats/files/atomic_output.hpp"
#include "formats/support/error.hpp"
#include "formats/support/suggestions.hpp"
#include "gpu/cuda/device/device.hpp"
#include "gpu/cuda/device/on_devices.hpp"
#include "gpu/cuda/validation/instruction_validation.hpp"
#include "gpu/operands/sass_table.hpp"
#include "gpu/validation/device_capture.hpp"
#include "tools/console/counted.hpp"
#include "tools/console/elapsed.hpp"
#include "tools/console/exit_status.hpp"
#include "tools/console/interruption.hpp"
#include "tools/console/terminal.hpp"
#include "tools/gpu/devices_option.hpp"
#include "tools/gpu/gpu_commands.hpp"
#include "tools/gpu/gpu_functions.hpp"
#include "tools/gpu/provenance.hpp"

namespace guardbit::tools {

namespace {

using gpu::InstructionReport;
using gpu::TensorCoreInstruction;
using Json = nlohmann::ordered_json;

struct Options {
  std::vector<std::string> names;
  bool all = false, json = false, functions = false;
  std::string outputs = "1e8", reference_outputs = "1e6";
  std::string family, operands = "any", devices = "all", sass, output, captures = ".";
  std::uint64_t seed = 1;
};

/// A whole number that may be written as 1e9.
std::uint64_t count_of(const std::string& text, const char* option) {
  std::size_t used = 0;
  double value = -1;
  try {
    value = std::stod(text, &used);
  } catch (const std::exception&) {
    used = 0;
  }
  if (used != text.size() || !(value >= 0) || value > 1e15 || value != std::floor(value))
    throw formats::Error(option, "'" + text + "' is no number of outputs", "0 to 1e15");
  return static_cast<std::uint64_t>(value);
}

bool wanted_operands(const Options& options, const TensorCoreInstruction& instruction) {
  if (options.operands == "any") return true;
  return is_integer(instruction.a) == (options.operands == "integer");
}

/// The plain form of that very name or the variant that its capture is named after, or else all
/// whose name holds the word.
void choose(const Options& options, const std::string& word,
            std::set<const TensorCoreInstruction*>& chosen) {
  std::set<const TensorCoreInstruction*> exact, holding;
  std::vector<std::string_view> names;
  for (const TensorCoreInstruction& instruction : gpu::tensor_core_instructions()) {
    if (!wanted_operands(options, instruction)) continue;
    names.push_back(instruction.name);
    const bool plain = instruction.name == word && instruction.variant.empty();
    if (plain || gpu::capture_stem(instruction) == word) exact.insert(&instruction);
    if (gpu::capture_stem(instruction).find(word) != std::string::npos)
      holding.insert(&instruction);
  }
  if (exact.empty() && holding.empty())
    throw formats::Error("gpu validate", formats::unknown_name("instruction", word, names),
                         "see 'guardbit gpu list'");
  chosen.merge(exact.empty() ? holding : exact);
}

std::vector<const TensorCoreInstruction*> choose(const Options& options) {
  std::set<const TensorCoreInstruction*> chosen;
  if (options.all == !options.names.empty())
    throw formats::Error("gpu validate", options.all ? "names and --all exclude each other"
                                                     : "needs instructions or --all");
  for (const std::string& word : options.names) choose(options, word, chosen);
  std::vector<const TensorCoreInstruction*> instructions;
  for (const TensorCoreInstruction& instruction : gpu::tensor_core_instructions())
    if (options.all ? wanted_operands(options, instruction) : chosen.contains(&instruction))
      instructions.push_back(&instruction);
  return instructions;
}

Json json_of(const TensorCoreInstruction& instruction, const InstructionReport& report,
             const std::string& sass) {
  Json families = Json::array();
  for (const gpu::FamilyReport& family : report.families) {
    Json coverage = Json::object();
    for (const emulator::EventEntry& entry : emulator::events)
      if (const std::uint64_t count = family.coverage.of(entry.event); count != 0)
        coverage[std::string(entry.name)] = count;
    families.push_back({{"name", family.name},
                        {"outputs", family.outputs},
                        {"mismatches", family.mismatches},
                        {"observed", family.coverage.outputs},
                        {"coverage", coverage}});
  }
  return {{"name", instruction.name},
          {"variant", instruction.variant},
          {"sass", sass},
          {"outputs", report.outputs},
          {"mismatches", report.mismatches},
          {"reference_outputs", report.reference_outputs},
          {"reference_mismatches", report.reference_mismatches},
          {"seconds",
           {{"generate", report.seconds.generate},
            {"pack", report.seconds.pack},
            {"tensor_core", report.seconds.tensor_core},
            {"model", report.seconds.model},
            {"reference", report.seconds.reference},
            {"plain_fma", report.plain_fma_seconds}}},
          {"families", families},
          {"never", report.never}};
}

class Campaign {
 public:
  Campaign(const Options& options, std::vector<const TensorCoreInstruction*> instructions)
      : options_(options),
        instructions_(std::move(instructions)),
        device_(gpu::require_device()),
        devices_(usable_devices(options.devices)),
        sass_(gpu::read_sass(options.sass)),
        plan_{.outputs = count_of(options.outputs, "--outputs"),
              .reference_outputs = count_of(options.reference_outputs, "--reference"),
              .seed = options.seed,
              .family = options.family} {}

  int run() {
    if (!std::filesystem::is_directory(options_.captures))
      throw formats::Error(options_.captures, "is not a folder");
    std::optional<formats::AtomicOutput> file;
    if (!options_.output.empty())
      file.emplace(options_.output);  // fails before the work, not after
    const auto start = std::chrono::steady_clock::now();
    const Interruption interruption;
    std::vector<Validated> validated(instructions_.size());
    {
      ProgressLine progress("validating", instructions_.size());
      gpu::divide_among(
          devices_,
          {.count = instructions_.size(),
           .work = [&](std::size_t i) { validated[i] = validate(*instructions_[i], interruption); },
           .finished =
               [&](std::size_t i) {
                 note(*instructions_[i], validated[i]);
                 validated[i] = {};
                 progress.update(i + 1);
               },
           .goes_on = [&] { return !interruption.asked_for(); }});
    }
    seconds_ = seconds_since(start);
    if (status_ == 0 && mismatches_ != 0) status_ = exit_mismatch;
    if (file) {
      file->write(summary().dump(1) + "\n");
      file->commit();
    }
    print();
    interruption.check();
    return status_;
  }

 private:
  /// Variants of a form and other sizes share its arithmetic: they get a smaller run.
  gpu::ValidationPlan plan_of(const TensorCoreInstruction& instruction) const {
    gpu::ValidationPlan plan = plan_;
    const std::uint64_t share = instruction.size_sweep ? 100 : instruction.variant.empty() ? 1 : 10;
    plan.outputs = plan_.outputs / share;
    plan.reference_outputs = plan_.reference_outputs / share;
    return plan;
  }

  /// What became of an instruction; without a report it was skipped.
  struct Validated {
    std::optional<InstructionReport> report;
    /// the smallest case of its first mismatch
    std::optional<gpu::Batch> smallest;
  };

  /// On the current device.
  Validated validate(const TensorCoreInstruction& instruction,
                     const Interruption& interruption) const {
    Validated out;
    if (!gpu::Staging::accepts(instruction)) return out;
    const emulator::MatrixInstruction model = gpu::catalogue_instruction(instruction);
    out.report =
        gpu::validate_instruction(instruction, model, plan_of(instruction),
                                  [&](std::uint64_t) { return !interruption.asked_for(); });
    if (out.report->mismatch)
      out.smallest = gpu::reduce_mismatch(instruction, model, *out.report->mismatch);
    return out;
  }

  void note(const TensorCoreInstruction& instruction, const Validated& validated) {
    if (!validated.report) {
      skipped_.push_back(gpu::capture_stem(instruction));
      return;
    }
    const InstructionReport& report = *validated.report;
    interrupted_ |= report.interrupted;
    outputs_ += report.outputs;
    mismatches_ += report.mismatches + report.reference_mismatches;
    total_ += report.seconds;
    reports_.push_back(json_of(instruction, report, gpu::sass_of(sass_, instruction)));
    if (!options_.json && (instructions_.size() <= 8 || report.mismatches != 0))
      print(instruction, report);
    if (validated.smallest) save(instruction, *validated.smallest);
  }

  static void print(const TensorCoreInstruction& instruction, const InstructionReport& report) {
    std::cout << gpu::capture_stem(instruction) << ": " << report.outputs << " outputs, "
              << counted(report.mismatches, "mismatch", "es") << "; by the reference "
              << report.reference_outputs << ", " << report.reference_mismatches << '\n';
    for (const gpu::FamilyReport& family : report.families)
      if (family.mismatches != 0)
        std::cout << "  " << family.name << ": " << family.mismatches << " of " << family.outputs
                  << '\n';
    for (const std::string_view event : report.never)
      std::cout << "  no family showed: " << event << '\n';
  }

  void save(const TensorCoreInstruction& instruction, const gpu::Batch& batch) const {
    const std::string path =
        options_.captures + "/" + gpu::capture_stem(instruction) + ".mismatch.safetensors";
    gpu::write_capture(path, instruction, batch,
                       {{"device", device_.name},
                        {"driver", device_.driver},
                        {"cuda", device_.toolkit},
                        {"seed", std::to_string(options_.seed)}});
    std::cerr << "wrote the smallest case found to " << path << " (guardbit verify explains it)\n";
  }

  Json summary() const {
    Json out = provenance(device_);
    out["date"] = today();
    out["seed"] = options_.seed;
    out["rows"] = reports_;
    out["skipped"] = skipped_;
    out["total"] = {{"rows", reports_.size()},    {"outputs", outputs_},
                    {"mismatches", mismatches_},  {"seconds", seconds_},
                    {"devices", devices_.size()}, {"interrupted", interrupted_}};
    return out;
  }

  void print() const {
    if (options_.json) {
      std::cout << summary().dump(1) << '\n';
      return;
    }
    const auto rate = [&](double seconds) {
      return seconds > 0 ? static_cast<double>(outputs_) / seconds * 1e-9 : 0;
    };
    std::cout << reports_.size() << " of " << instructions_.size() << " instructions, "
              << static_cast<double>(outputs_) << " outputs, "
              << counted(mismatches_, "mismatch", "es") << ", " << seconds_ << " s on "
              << devices_text(devices_, device_) << "\ngigaoutputs per second: generation "
              << rate(total_.generate) << ", packing " << rate(total_.pack) << ", tensor core "
              << rate(total_.tensor_core) << ", model " << rate(total_.model) << '\n';
    if (!skipped_.empty())
      std::cout
          << skipped_.size()
          << " instructions were skipped: their operands cannot be packed on the device yet; 'guardbit gpu record' takes them\n";
    if (interrupted_)
      std::cout << "interrupted: the last instruction is incomplete, the rest was skipped\n";
  }

  const Options& options_;
  std::vector<const TensorCoreInstruction*> instructions_;
  gpu::Device device_;
  std::vector<int> devices_;
  gpu::SassTable sass_;
  gpu::ValidationPlan plan_;
  Json reports_ = Json::array();
  std::vector<std::string> skipped_;
  gpu::ValidationSeconds total_;
  std::uint64_t outputs_ = 0, mismatches_ = 0;
  double seconds_ = 0;
  bool interrupted_ = false;
  int status_ = 0;
};

}  // namespace

void add_gpu_validate(CLI::App& gpu, int& status) {
  const auto options = std::make_shared<Options>();
  CLI::App* const command =
      gpu.add_subcommand("validate", "Compare the tensor core with the models, both on the device");
  command->add_option("INSTRUCTION", options->names,
                      "Names, or parts of names, of instructions; see 'guardbit gpu list'");
  command->add_flag("--all", options->all, "Every instruction");
  command->add_flag(
      "--functions", options->functions,
      "Instructions that are functions of numbers instead, as ex2.approx.ftz.f32: those of one operand "
      "on all inputs, others on so many --outputs");
  command
      ->add_option(
          "--outputs", options->outputs,
          "Outputs to compare of each plain form, 1e9 for example; a variant of it gets a tenth, other N of wgmma a hundredth")
      ->capture_default_str();
  command
      ->add_option("--reference", options->reference_outputs,
                   "Outputs of each family that the reference judges beside the model kernel")
      ->capture_default_str();
  command->add_option("--operands", options->operands, "Which instructions of those")
      ->check(CLI::IsMember({"any", "floating", "integer"}))
      ->capture_default_str();
  command->add_option("--family", options->family, "One family of inputs only");
  command->add_option("--seed", options->seed, "Seed of the inputs")->capture_default_str();
  command
      ->add_option("--captures", options->captures,
                   "Existing folder for the smallest case of each mismatch")
      ->capture_default_str();
  add_devices_option(*command, options->devices);
  command->add_option("--sass", options->sass,
                      "Table of the machine code (gpu/list_sass.py) to note in the summary");
  command->add_option("-o,--output", options->output, "Write the summary as JSON to this file");
  command->add_flag("--json", options->json, "Print the summary as JSON");
  command->footer(
      "Exit status 1 where an output differs.\n"
      "Example: guardbit gpu validate --all --outputs 1e9 -o validation.json\n"
      "Example: guardbit gpu validate --functions --all --outputs 1e10 -o functions.json");
  command->callback([options, &status] {
    if (!options->functions) {
      status = Campaign(*options, choose(*options)).run();
      return;
    }
    if (options->all != options->names.empty())
      throw formats::Error("gpu validate", options->all ? "names and --all exclude each other"
                                                        : "needs functions or --all");
    status = validate_functions({options->names, count_of(options->outputs, "--outputs"),
                                 options->output, options->json, usable_devices(options->devices)});
  });
}

}  // namespace guardbit::tools
