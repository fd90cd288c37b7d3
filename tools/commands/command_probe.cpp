// `guardbit probe`: infers the arithmetic of an instruction, or of a user's program, from its
// results (emulator/probe), prints it with the evidence, and can write it as an instruction for
// --spec.

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "emulator/catalogue/instruction_catalogue.hpp"
#include "emulator/engine/engines.hpp"
#include "emulator/probe/probe.hpp"
#include "formats/files/atomic_output.hpp"
#include "formats/format_catalogue.hpp"
#include "formats/support/error.hpp"
#include "formats/support/printable.hpp"
#include "tools/commands/commands.hpp"
#include "tools/commands/refused_options.hpp"
#include "tools/console/interruption.hpp"
#include "tools/console/print_json.hpp"
#include "tools/plot/picture_file.hpp"
#include "tools/plot/sum_tree_picture.hpp"
#include "tools/products/function_probe_report.hpp"
#include "tools/products/probe_report.hpp"
#include "tools/products/spec_file.hpp"
#include "tools/products/user_kernel.hpp"

namespace guardbit::tools {

namespace {

using emulator::BlackBox;
using emulator::MatrixInstruction;
using emulator::ProbeReport;
using formats::Error;

struct ProbeOptions {
  std::string instruction, arch, toolkit;
  std::string engine = "auto";
  UserKernel kernel;
  std::string a, b, c, d;
  int k = 16;
  std::uint64_t seed = 1;
  std::string dot, output;
  PlotOptions plot;
  std::vector<std::string> specs;
  bool json = false;
  bool is_function = false;
  std::size_t operands = 1, results = 1;
};

BlackBox box_of_kernel(const ProbeOptions& options) {
  const auto format = [](const std::string& option, const std::string& name) {
    if (name.empty()) throw Error("probe", option + " is needed: the format, as in fp32");
    return formats::require_format(name, option);
  };
  BlackBox box;
  box.a = format("--a", options.a);
  box.b = format("--b", options.b.empty() ? options.a : options.b);
  box.d = format("--d", options.d);
  box.has_addend = !options.c.empty() && options.c != "none";
  box.c = box.has_addend ? format("--c", options.c) : box.d;
  box.k = options.k;
  if (options.kernel.row >= options.kernel.m || options.kernel.column >= options.kernel.n)
    throw Error("probe", "--row and --column are not below --m and --n");
  box.answer = [&options, shape = box](std::span<const emulator::Question> list) {
    // The program and its files are to be removed first.
    const Interruption interruption;
    auto answers = run_user_kernel(options.kernel, shape, list, interruption);
    interruption.check();
    return answers;
  };
  return box;
}

void write_text(const std::string& path, const std::string& text) {
  if (path.empty()) return;
  formats::write_file(path, text);
}

constexpr int status_not_found = 1;

/// Returns the exit status.
int run_function(const ProbeOptions& options) {
  if (options.kernel.command.empty()) throw Error("--function", "needs --exec COMMAND");
  const auto format = [](const std::string& option, const std::string& name) {
    return formats::require_format(name, option);
  };
  FunctionProbeReport report;
  report.unit = formats::printable(options.kernel.command);
  report.shape = {options.operands,
                  options.results,
                  options.a.empty() ? formats::fp32 : format("--a", options.a),
                  {}};
  report.shape.result = options.d.empty() ? report.shape.operand : format("--d", options.d);
  const std::string arch = options.arch.empty() ? "sm_90" : options.arch;
  const std::string_view page = emulator::require_page(arch, "--arch");
  const EndAtOnce at_once;
  report.questions = emulator::function_questions(report.shape, options.seed);
  {
    const Interruption interruption;
    report.answers =
        run_user_function(options.kernel, report.shape, report.questions, interruption);
    interruption.check();
  }
  report.fits = emulator::fit_functions(report.shape, page, report.questions, report.answers);
  options.json ? print_json(function_probe_json(report)) : print_function_probe(std::cout, report);
  return report.is_found() ? 0 : status_not_found;
}

/// Returns the exit status.
int run(ProbeOptions options) {
  options.plot.require_valid();
  load_specs(options.specs, options.arch, options.instruction);
  const bool by_name = !options.instruction.empty();
  if (by_name == !options.kernel.command.empty()) {
    throw Error("probe", by_name
                             ? "--instruction and --exec: only one of them"
                             : "needs --instruction NAME --arch A, --spec FILE, or --exec COMMAND");
  }
  MatrixInstruction instruction;
  BlackBox box;
  std::string unit;
  if (by_name) {
    if (options.arch.empty()) throw Error("probe", "--instruction needs --arch");
    instruction =
        emulator::require_instruction(options.arch, options.instruction, "probe",
                                      emulator::require_toolkit(options.toolkit, "--toolkit"));
    refuse_toolkit(instruction, options.toolkit);
    const emulator::Engine& engine = emulator::require_engine(options.engine, instruction);
    box = emulator::black_box(engine, instruction);
    unit = std::string(std::string_view(instruction.name)) + " of " +
           std::string(instruction.arch) + ", engine " + std::string(engine.name);
  } else {
    box = box_of_kernel(options);
    unit = formats::printable(options.kernel.command);
  }
  const ProbeReport report = [&] {
    const EndAtOnce at_once;
    return emulator::probe(box, options.seed);
  }();
  box.a = report.a;
  box.b = report.b;
  box.c = report.c;
  box.d = report.d;
  // Files are written whole.
  const Interruption interruption;
  if (report.explained) write_text(options.output, spec_of(report));
  const bool has_tree = !emulator::leaves(report.tree).empty();
  if (options.plot.asked() && has_tree)
    write_picture(options.plot.path, sum_tree_picture(report.tree, box.k));
  write_text(options.dot, emulator::tree_dot(report.tree, box.k));
  if (options.json) {
    print_json(probe_json(unit, box, report));
  } else {
    print_probe(std::cout, unit, box, report);
  }
  if (options.plot.asked() && !has_tree)
    throw Error("--plot", "there is no tree to draw: " + report.tree_note);
  if (options.output.empty() || report.explained) return 0;
  std::cerr << "guardbit: " << formats::printable(options.output)
            << ": not written: no arithmetic of the model gives every answer\n";
  return status_not_found;
}

}  // namespace

void add_probe(CLI::App& app, int& status) {
  CLI::App* command =
      app.add_subcommand("probe", "Infer a unit's arithmetic from its answers alone");
  const auto options = std::make_shared<ProbeOptions>();
  command->add_option("--instruction", options->instruction,
                      "The unit: an instruction's PTX name or mnemonic, as an engine executes it");
  command->add_option("--arch", options->arch, "Its machine: sm_90, cdna3, ...");
  command->add_option("--engine", options->engine,
                      "Engine that answers (default: the fastest model; cpu: this machine's unit)");
  command->add_option("--toolkit", options->toolkit,
                      "ptxas version that compiled it, where it matters (default: newest)");
  add_spec_option(*command, options->specs);
  command->add_option(
      "--exec", options->kernel.command,
      "The unit: a program of yours, started as COMMAND IN OUT; "
      "it reads a [T, M, K], b [T, K, N], c [T, M, N] from the safetensors file IN and writes d [T, M, N] to OUT");
  command->add_flag(
      "--function", options->is_function,
      "The program computes a function of numbers: which one? It reads x [T], and y, z, w "
      "where it has more operands, and writes d [T]; --a and --d are their formats (fp32)");
  command->add_option("--operands", options->operands, "With --function: how many (default: 1)")
      ->check(CLI::Range(std::size_t{1}, emulator::most_operands));
  command
      ->add_option("--results", options->results,
                   "With --function: 2 where the program writes d1, too (default: 1)")
      ->check(CLI::Range(std::size_t{1}, emulator::most_results));
  command->add_option("--a", options->a, "With --exec: format of A");
  command->add_option("--b", options->b, "Format of B (default: A's)");
  command->add_option("--c", options->c, "Format of C; none: the program has no C (default)");
  command->add_option("--d", options->d, "Format of D");
  command
      ->add_option("--k", options->k,
                   "With --exec: products of one result (default: 16); above " +
                       std::to_string(emulator::max_k) + " only the order of additions is found")
      ->check(CLI::Range(1, emulator::most_leaves));
  command->add_option("--m", options->kernel.m, "With --exec: rows of A, all equal (default: 1)")
      ->check(CLI::Range(1, 1024));
  command->add_option("--n", options->kernel.n, "With --exec: columns of B, all equal (default: 1)")
      ->check(CLI::Range(1, 1024));
  CLI::Option* const element_row = command->add_option(
      "--row", options->kernel.row,
      "With --exec: ask this row of D alone (default: all elements, which must be equal)");
  CLI::Option* const element_column =
      command->add_option("--column", options->kernel.column, "... and this column");
  element_row->check(CLI::Range(0, 1023))->needs(element_column);
  element_column->check(CLI::Range(0, 1023))->needs(element_row);
  command
      ->add_option("--timeout", options->kernel.seconds,
                   "With --exec: seconds for one run (default: 60)")
      ->check(CLI::Range(0.01, 86400.0));
  command->add_option("--seed", options->seed, "Chooses the random questions (default: 1)")
      ->check(below_zero);
  command->add_option(
      "-o,--output", options->output,
      "Write the instruction that was found: text for --spec of this command, run, gemm, verify, explain and compare");
  command
      ->add_option(
          "--plot,--svg", options->plot.path,
          "Draw the tree of additions into this file: .svg, .pdf or .png by its name (.pdf and .png need rsvg-convert)")
      ->type_name("FILE");
  command->add_option("--dot", options->dot, "The same in Graphviz's language");
  command->add_flag("--json", options->json, "Print JSON");
  command->footer(
      "The probe knows only the unit's answers; it compares with the catalogue at the end.\n"
      "Example: guardbit probe --engine reference --arch sm_90 --instruction mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32\n"
      "Example: guardbit probe --exec ./my_unit --a fp16 --c fp32 --d fp32 --k 16 -o my_unit.txt\n"
      "Example: guardbit probe --exec 'python3 my_matmul.py' --a fp32 --d fp32 --k 32 --plot tree.pdf\n"
      "Example: guardbit probe --function --exec ./my_exp --a fp32");
  command->callback([options, command, &status] {
    if (options->is_function) {
      refuse_unread(*command,
                    {"--instruction", "--engine", "--toolkit", "--spec", "--b", "--c", "--k", "--m",
                     "--n", "--row", "--column", "--output", "--plot", "--dot"},
                    "without --function");
      status = run_function(*options);
      return;
    }
    refuse_unread(*command, {"--operands", "--results"}, "with --function");
    if (!options->instruction.empty())
      refuse_unread(
          *command,
          {"--a", "--b", "--c", "--d", "--k", "--m", "--n", "--row", "--column", "--timeout"},
          "with --exec");
    if (!options->kernel.command.empty())
      refuse_unread(*command, {"--arch", "--engine", "--toolkit"}, "with --instruction");
    status = run(*options);
  });
}

}  // namespace guardbit::tools
