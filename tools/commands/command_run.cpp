#include <CLI/CLI.hpp>
#include <algorithm>
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

#include "emulator/capture/bound_operands.hpp"
#include "emulator/capture/capture.hpp"
#include "emulator/catalogue/instruction_catalogue.hpp"
#include "emulator/engine/engines.hpp"
#include "formats/files/array_file.hpp"
#include "formats/files/dtype.hpp"
#include "formats/files/safetensors.hpp"
#include "formats/support/error.hpp"
#include "formats/support/printable.hpp"
#include "formats/tensors/storage.hpp"
#include "tools/commands/commands.hpp"
#include "tools/console/counted.hpp"
#include "tools/console/elapsed.hpp"
#include "tools/console/print_json.hpp"
#include "tools/console/threads_option.hpp"
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

/// The format that the instruction gives the operand.
Format format_of(const MatrixInstruction& instruction, const std::string& tensor) {
  if (tensor == "a") return instruction.a;
  if (tensor == "b") return instruction.b;
  if (tensor == "c") return instruction.c;
  return tensor == "e" ? formats::uint8 : instruction.scale.format;
}

const Source& source_of(const RunOptions& options, const std::string& tensor) {
  return *std::find_if(options.sources.begin(), options.sources.end(),
                       [&](const Source& s) { return s.tensor == tensor; });
}

/// C or D of zeros, in the shape that A and B imply.
Tensor zeros(const std::string& name, const Format& format, const MatrixInstruction& instruction,
             const std::vector<Tensor>& operands) {
  const auto shape_of = [&](const std::string& operand) -> const std::vector<std::int64_t>& {
    return std::find_if(operands.begin(), operands.end(),
                        [&](const Tensor& t) { return t.name == operand; })
        ->shape;
  };
  const std::vector<std::int64_t>& a = shape_of("a");
  const std::vector<std::int64_t>& b = shape_of("b");
  if (a.size() != 3 || b.size() != 3)
    throw Error("run", "A and B need shapes [T, M, K] and [T, K, N], or [M, K] and [K, N]");
  const std::vector<std::int64_t> shape = {a[0],
                                           instruction.shape.m != 0 ? instruction.shape.m : a[1],
                                           instruction.shape.n != 0 ? instruction.shape.n : b[2]};
  const auto count = formats::checked_element_count(shape);
  if (!count) throw Error("run", "the result has too many elements");
  const auto width = static_cast<std::size_t>(formats::container_bits(format)) / 8;
  return formats::owning_tensor(name, format, formats::Packing::container, shape,
                                std::vector<std::byte>(static_cast<std::size_t>(*count) * width));
}

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

void run(RunOptions options) {
  load_specs(options.specs, options.arch, options.instruction);
  if (options.instruction.empty() || options.arch.empty())
    throw Error("run", "needs INSTRUCTION and --arch, or --spec");
  const MatrixInstruction instruction =
      emulator::require_instruction(options.arch, options.instruction, "run",
                                    emulator::require_toolkit(options.toolkit, "--toolkit"));
  const emulator::Engine& engine = emulator::require_engine(options.engine, instruction);
  options.modifiers.zero_addend = options.scale_d == 0;
  if ((options.modifiers.negate_a || options.modifiers.negate_b) &&
      formats::is_integer(instruction.a)) {
    throw Error("run", "--negate-a and --negate-b are for floating operands, not " +
                           formats::name_of(instruction.a));
  }
  std::vector<Tensor> operands;
  std::string where;
  bool two_dimensional = true;
  for (const Source& source : options.sources) {
    if (source.place.empty()) continue;
    where += (where.empty() ? "" : " ") + source.option + " " + formats::printable(source.place);
    operands.push_back(read_operand(source.option, source.tensor, source.place,
                                    format_of(instruction, source.tensor)));
    if (operands.back().shape.size() == 2) {
      operands.back().shape.insert(operands.back().shape.begin(), 1);
    } else {
      two_dimensional = false;
    }
  }
  if (source_of(options, "c").place.empty())
    operands.push_back(zeros("c", instruction.c, instruction, operands));
  Tensor d = zeros("d", instruction.d, instruction, operands);
  emulator::BoundBatch bound =
      emulator::bind_operands(instruction, operands, emulator::ElementType::same_bits, where);
  std::vector<std::byte> results(d.bytes.size());
  bound.batch.d = emulator::codes_of(instruction.d, results.data());
  bound.batch.modifiers = options.modifiers;

  const auto start = std::chrono::steady_clock::now();
  if (bound.outputs() != 0) emulator::run_batch(engine, instruction, bound.batch, options.threads);
  const double seconds = seconds_since(start);

  std::vector<Tensor> tensors = bound.tensors;
  tensors.push_back(formats::owning_tensor("d", instruction.d, formats::Packing::container, d.shape,
                                           std::move(results)));
  write_result(options, instruction, engine, std::move(tensors), two_dimensional);
  print({options, engine, bound.batch.count, bound.outputs(), seconds});
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
  command->add_flag("--negate-a", options->modifiers.negate_a, "Negate A (imm-scale-a = -1)");
  command->add_flag("--negate-b", options->modifiers.negate_b, "Negate B");
  command->add_option("--scale-d", options->scale_d, "0: ignore C")->check(CLI::IsMember({0, 1}));
  add_threads_option(*command, options->threads);
  command->add_flag("--as-capture", options->as_capture,
                    "Write operands and D as a capture file that verify reads");
  command->add_flag("--json", options->json, "Print JSON");
  command->footer(
      "Element types follow the instruction; unsigned words of the same width are taken as codes.\n"
      "Example: guardbit run mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 --arch sm_90 --a a.npy --b b.npy -o d.npy");
  command->callback([options] { run(*options); });
}

}  // namespace guardbit::tools
