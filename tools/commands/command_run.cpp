#include <CLI/CLI.hpp>
#include <chrono>
#include <iomanip>
#include <iostream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "emulator/capture/capture.hpp"
#include "emulator/catalogue/instruction_catalogue.hpp"
#include "emulator/engine/engines.hpp"
#include "formats/files/array_file.hpp"
#include "formats/files/dtype.hpp"
#include "formats/files/safetensors.hpp"
#include "formats/support/error.hpp"
#include "formats/support/printable.hpp"
#include "tools/commands/commands.hpp"
#include "tools/commands/refused_options.hpp"
#include "tools/console/counted.hpp"
#include "tools/console/elapsed.hpp"
#include "tools/console/print_json.hpp"
#include "tools/console/threads_option.hpp"
#include "tools/products/instruction_run.hpp"
#include "tools/products/operand_file.hpp"
#include "tools/products/spec_file.hpp"

namespace guardbit::tools {

namespace {

using emulator::MatrixInstruction;
using formats::Error;
using formats::Format;
using formats::Tensor;

/// One operand of the command line: its option, the tensor it becomes, where it is read from.
struct Source {
  std::string option, tensor, place;
};

struct RunOptions {
  std::string instruction, arch, output;
  std::string engine = "auto";
  std::string toolkit;
  std::vector<std::string> specs;
  std::vector<Source> sources = {{"--a", "a", ""},
                                 {"--b", "b", ""},
                                 {"--c", "c", ""},
                                 {"--e", "e", ""},
                                 {"--a-scale", "a_scale", ""},
                                 {"--b-scale", "b_scale", ""}};
  emulator::Modifiers modifiers;
  int scale_d = 1;
  int threads = 0;
  bool as_capture = false, json = false;
};

/// A tensor in the element type that a capture file stores its codes in.
Tensor stored_for_capture(Tensor tensor) {
  const bool narrow = formats::bits(tensor.format) < 8;
  tensor.format = narrow ? formats::uint8 : formats::container_dtype(tensor.format).format;
  return tensor;
}

struct Summary {
  const RunOptions& options;
  const emulator::Engine& engine;
  std::int64_t executions, outputs;
  double seconds;
};

void print(const Summary& summary) {
  const RunOptions& options = summary.options;
  if (options.json) {
    const nlohmann::ordered_json j = {{"instruction", options.instruction},
                                      {"arch", options.arch},
                                      {"engine", summary.engine.name},
                                      {"executions", summary.executions},
                                      {"outputs", summary.outputs},
                                      {"seconds", summary.seconds},
                                      {"file", options.output}};
    print_json(j);
    return;
  }
  std::cout << counted(summary.executions, "execution") << " of " << options.instruction << ", "
            << counted(summary.outputs, "output") << ", engine " << summary.engine.name << ", "
            << std::fixed << std::setprecision(2) << summary.seconds
            << " s: " << formats::printable(options.output) << '\n';
}

void write_result(const RunOptions& options, const MatrixInstruction& instruction,
                  const emulator::Engine& engine, std::vector<Tensor> tensors,
                  bool two_dimensional) {
  if (options.as_capture) {
    if (!options.output.ends_with(".safetensors")) {
      throw Error(formats::printable(options.output), "a capture is a .safetensors file");
    }
    std::map<std::string, std::string> metadata = emulator::capture_metadata(
        instruction, options.arch, emulator::require_toolkit(options.toolkit, "--toolkit"),
        options.modifiers);
    metadata["device"] = engine.device == nullptr ? "guardbit model" : engine.device();
    for (Tensor& tensor : tensors) tensor = stored_for_capture(std::move(tensor));
    return formats::write_safetensors(options.output, metadata, tensors);
  }
  Tensor d = tensors.back();
  if (two_dimensional) d.shape.erase(d.shape.begin());
  formats::write_tensors(options.output, {}, std::vector<Tensor>{d});
}

void run(const CLI::App& command, RunOptions options) {
  load_specs(options.specs, options.arch, options.instruction);
  if (options.instruction.empty() || options.arch.empty())
    throw Error("run", "needs INSTRUCTION and --arch, or --spec");
  const MatrixInstruction instruction =
      emulator::require_instruction(options.arch, options.instruction, "run",
                                    emulator::require_toolkit(options.toolkit, "--toolkit"));
  const emulator::Engine& engine = emulator::require_engine(options.engine, instruction);
  options.modifiers.zero_addend = options.scale_d == 0;
  if (!takes_modifiers(instruction))
    refuse_unread(command, {"--negate-a", "--negate-b", "--scale-d"}, "by wgmma and tcgen05");
  if (!options.as_capture) refuse_toolkit(instruction, options.toolkit);
  require_modifiers(instruction, options.modifiers);
  std::vector<Tensor> operands;
  std::string where;
  bool two_dimensional = true;
  for (const Source& source : options.sources) {
    if (source.place.empty()) continue;
    where += (where.empty() ? "" : " ") + source.option + " " + formats::printable(source.place);
    operands.push_back(read_operand(source.option, source.tensor, source.place,
                                    operand_format(instruction, source.tensor)));
    if (operands.back().shape.size() == 2) {
      operands.back().shape.insert(operands.back().shape.begin(), 1);
    } else {
      two_dimensional = false;
    }
  }
  const auto start = std::chrono::steady_clock::now();
  InstructionRun done = run_instruction(instruction, engine, std::move(operands), options.modifiers,
                                        options.threads, where);
  const double seconds = seconds_since(start);
  write_result(options, instruction, engine, std::move(done.tensors), two_dimensional);
  print({options, engine, done.executions, done.outputs, seconds});
}

}  // namespace

void add_run(CLI::App& app, int&) {
  CLI::App* command = app.add_subcommand("run", "Execute an instruction on matrices from files");
  const auto options = std::make_shared<RunOptions>();
  command->add_option("INSTRUCTION", options->instruction,
                      "Its PTX name or vendor mnemonic; see guardbit list");
  command->add_option("--arch", options->arch, "The machine: sm_90, cdna3, ...");
  add_spec_option(*command, options->specs);
  const char* const help[] = {
      "A: [T, M, K] or [M, K], as FILE or FILE:TENSOR; .npy, .npz or .safetensors",
      "B: [T, K, N] or [K, N]",
      "C: [T, M, N] or [M, N] (default: +0)",
      "Positions of the stored values of a sparse A",
      "Scale factors of A",
      "Scale factors of B"};
  for (std::size_t i = 0; i < options->sources.size(); ++i) {
    CLI::Option* option =
        command->add_option(options->sources[i].option, options->sources[i].place, help[i]);
    if (i < 2) option->required();
  }
  command->add_option("-o,--output", options->output, "Where D goes: .npy, .npz or .safetensors")
      ->required();
  command->add_option(
      "--engine", options->engine,
      "Engine that computes (default: the fastest model that can; cpu: this machine's own unit)");
  command->add_option("--toolkit", options->toolkit,
                      "ptxas version that compiled it, where it matters (default: newest)");
  command->add_flag("--negate-a", options->modifiers.negate_a,
                    "Negate A of wgmma or tcgen05 (imm-scale-a = -1)");
  command->add_flag("--negate-b", options->modifiers.negate_b, "Negate B");
  command->add_option("--scale-d", options->scale_d, "Of wgmma or tcgen05: 0: ignore C")
      ->check(CLI::IsMember({0, 1}));
  add_threads_option(*command, options->threads);
  command->add_flag("--as-capture", options->as_capture,
                    "Write operands and D as a capture file that verify reads");
  command->add_flag("--json", options->json, "Print JSON");
  command->footer(
      "Element types follow the instruction; unsigned words of the same width are taken as codes.\n"
      "Example: guardbit run mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 --arch sm_90 --a a.npy --b b.npy -o d.npy");
  command->callback([options, command] { run(*command, *options); });
}

}  // namespace guardbit::tools
