// `guardbit probe`: infers the arithmetic of an instruction, or of a user's program, from its
// results (emulator/probe), prints it with the evidence, and can write it as an instruction for
// --spec.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "emulator/catalogue/instruction_catalogue.hpp"
#include "emulator/catalogue/instruction_text.hpp"
#include "emulator/engine/engines.hpp"
#include "emulator/explain/explain.hpp"
#include "emulator/probe/probe.hpp"
#include "formats/files/atomic_output.hpp"
#include "formats/format_catalogue.hpp"
#include "formats/support/error.hpp"
#include "formats/support/printable.hpp"
#include "formats/text.hpp"
#include "tools/catalogue/instruction_facts.hpp"
#include "tools/commands/commands.hpp"
#include "tools/commands/refused_options.hpp"
#include "tools/console/columns.hpp"
#include "tools/console/interruption.hpp"
#include "tools/console/print_json.hpp"
#include "tools/console/terminal.hpp"
#include "tools/plot/picture_file.hpp"
#include "tools/plot/sum_tree_picture.hpp"
#include "tools/products/spec_file.hpp"
#include "tools/products/user_kernel.hpp"

namespace guardbit::tools {

namespace {

using emulator::BlackBox;
using emulator::Finding;
using emulator::MatrixInstruction;
using emulator::ProbeReport;
using formats::Error;
using nlohmann::ordered_json;

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
};

BlackBox box_of_kernel(const ProbeOptions& options, const Interruption& interruption) {
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
  box.answer = [&options, &interruption, shape = box](std::span<const emulator::Question> list) {
    return run_user_kernel(options.kernel, shape, list, interruption);
  };
  return box;
}

ordered_json codes_json(const formats::Format& f, const std::vector<std::uint64_t>& codes) {
  ordered_json list = ordered_json::array();
  for (const std::uint64_t code : codes) list.push_back(formats::hex_text(f, code));
  return list;
}

ordered_json proof_json(const BlackBox& box, const ProbeReport& report, const Finding& f) {
  if (f.nearest_rejected.empty()) return nullptr;
  const emulator::Answered& x = report.answers.at(f.proof);
  ordered_json j = {{"rejects", f.nearest_rejected},
                    {"a", codes_json(box.a, x.question.a)},
                    {"b", codes_json(box.b, x.question.b)},
                    {"c", formats::hex_text(box.c, x.question.c)}};
  if (box.scale.count != 0) {
    j["a_scale"] = codes_json(box.scale.format, x.question.a_scale);
    j["b_scale"] = codes_json(box.scale.format, x.question.b_scale);
  }
  j["d"] = formats::hex_text(box.d, x.d);
  j["otherwise"] = formats::hex_text(box.d, f.otherwise);
  return j;
}

/// "VALUE: would give X, not Y"
std::string proof_text(const BlackBox& box, const ProbeReport& report, const Finding& f) {
  if (f.nearest_rejected.empty()) return {};
  return f.nearest_rejected + ": would give " + emulator::value_text(box.d, f.otherwise) +
         ", not " + emulator::value_text(box.d, report.answers.at(f.proof).d);
}

Columns<Finding> finding_columns(const BlackBox& box, const ProbeReport& report) {
  using F = Finding;
  const Column<F> proof = {"proof", "nearest value excluded", Side::left,
                           [&](const F& f) { return proof_json(box, report, f); },
                           [&](const F& f) { return proof_text(box, report, f); }};
  return {{"field", "field", Side::left, [](const F& f) { return f.field; }},
          {"value", "value", Side::left, [](const F& f) { return f.value; }},
          {"others", "not excluded", Side::left, [](const F& f) { return f.others; }},
          {"reason", "", Side::none, [](const F& f) { return f.reason; }},
          proof};
}

ordered_json report_json(const std::string& unit, const BlackBox& box, const ProbeReport& report) {
  ordered_json matches = ordered_json::array();
  for (const emulator::CatalogueMatch& match : report.catalogue) {
    ordered_json rows = ordered_json::array();
    for (const MatrixInstruction* instruction : match.instructions)
      rows.push_back({{"arch", instruction->arch}, {"name", std::string_view(instruction->name)}});
    matches.push_back({{"arithmetic", arithmetic_summary(*match.instructions.front())},
                       {"executions", match.executions},
                       {"rows", rows}});
  }
  const bool has_tree = !emulator::leaves(report.tree).empty();
  return {
      {"unit", unit},
      {"a", formats::name_of(box.a)},
      {"b", formats::name_of(box.b)},
      {"c", box.has_addend ? ordered_json(formats::name_of(box.c)) : ordered_json(nullptr)},
      {"d", formats::name_of(box.d)},
      {"k", box.k},
      {"narrowed", report.narrowed.empty() ? ordered_json(nullptr) : ordered_json(report.narrowed)},
      {"tree",
       {{"observable", report.tree_observable},
        {"text", has_tree ? emulator::tree_text(report.tree, box.k) : ""},
        {"note", report.tree_note},
        {"arithmetic", report.tree_arithmetic},
        {"mismatches", report.tree_arithmetic.empty() ? ordered_json(nullptr)
                                                      : ordered_json(report.tree_mismatches)}}},
      {"explained", report.explained},
      {"nans_alike", report.nans_alike},
      {"answers", report.answers.size()},
      {"mismatches", report.mismatches},
      {"arithmetic", report.explained ? arithmetic_summary(report.instruction) : ""},
      {"fields", finding_columns(box, report).json_list(report.findings)},
      {"alike", report.alike},
      {"catalogue", matches}};
}

void print_catalogue(const ProbeReport& report) {
  if (report.catalogue.empty()) {
    std::cout << "no instruction of the catalogue gives every answer\n";
    return;
  }
  std::cout << "instructions of the catalogue that give every answer\n";
  for (const emulator::CatalogueMatch& match : report.catalogue) {
    std::cout << "  " << arithmetic_summary(*match.instructions.front());
    if (match.executions > 1) std::cout << ", " << match.executions << " executions in a chain";
    std::cout << '\n';
    std::vector<std::string> archs;
    for (const MatrixInstruction* instruction : match.instructions) {
      const std::string arch(instruction->arch);
      if (std::find(archs.begin(), archs.end(), arch) != archs.end()) continue;
      archs.push_back(arch);
      const auto count = std::count_if(match.instructions.begin(), match.instructions.end(),
                                       [&](const auto* x) { return x->arch == arch; });
      std::cout << "    " << arch << "  " << std::string_view(instruction->name);
      if (count > 1) std::cout << " and " << count - 1 << " more";
      std::cout << '\n';
    }
  }
}

void print(const std::string& unit, const BlackBox& box, const ProbeReport& report) {
  std::cout << unit << '\n';
  if (!report.narrowed.empty()) std::cout << "formats: " << report.narrowed << '\n';
  if (!report.tree_note.empty()) std::cout << "order: " << report.tree_note << '\n';
  const bool node_by_node = !report.tree_arithmetic.empty() && report.tree_mismatches == 0;
  if (!report.explained && !node_by_node)
    std::cout << paint("nothing found", Colour::red) << ": no arithmetic gives all "
              << report.answers.size() << " answers\n";
  if (!emulator::leaves(report.tree).empty()) {
    constexpr int most_drawn = 128;
    if (box.k <= most_drawn) {
      std::cout << "tree: " << emulator::tree_text(report.tree, box.k) << '\n'
                << emulator::tree_drawing(report.tree, box.k);
    } else {
      std::cout << "tree: of " << box.k << " products, too large to print; --json, --svg and --dot "
                << "have it\n";
    }
  }
  if (!report.tree_arithmetic.empty())
    std::cout << "each node of the tree: " << report.tree_arithmetic << " ("
              << (report.tree_mismatches == 0
                      ? "all " + std::to_string(report.answers.size()) +
                            " answers; all NaNs count as equal"
                      : "every ordinary answer, not " + std::to_string(report.tree_mismatches) +
                            " of " + std::to_string(report.answers.size()))
              << ")\n";
  if (report.nans_alike && report.explained)
    std::cout << "all NaNs count as equal: no policy of the model gives their signs and payloads\n";
  if (!report.explained) {
    if (box.k > emulator::max_k) {
      std::cout << "the model's instructions have at most " << emulator::max_k
                << " products, so none was tried: --k " << emulator::max_k
                << " or less asks for the arithmetic, too\n";
    } else if (!report.has_structure) {
      std::cout << "the model has no instruction that adds in this order\n";
    } else {
      std::cout << "no arithmetic of the model gives every answer; the nearest differs in "
                << report.mismatches << " of " << report.answers.size() << '\n';
    }
    return print_catalogue(report);
  }
  std::cout << "arithmetic: " << arithmetic_summary(report.instruction) << " (all "
            << report.answers.size() << " answers)\n\n";
  finding_columns(box, report).print(std::cout, report.findings);
  for (const std::string& other : report.alike)
    std::cout << "another structure gives every answer, too: " << other << '\n';
  std::cout << '\n';
  print_catalogue(report);
}

void write_text(const std::string& path, const std::string& text) {
  if (path.empty()) return;
  formats::write_file(path, text);
}

/// The text of the instruction that was found, for any M and N.
std::string spec_of(const ProbeReport& report) {
  MatrixInstruction instruction = report.instruction;
  instruction.shape.m = instruction.shape.n = 0;
  for (int i = 0; report.nans_alike && i < instruction.steps.count; ++i)
    instruction.steps.list[static_cast<std::size_t>(i)].spec.nan = emulator::NanPolicy::unspecified;
  return "# Found by guardbit probe; all " + std::to_string(report.answers.size()) +
         " answers are its own. Run it with --spec.\n" + emulator::instruction_text(instruction);
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
  const Interruption interruption;
  MatrixInstruction instruction;
  BlackBox box;
  std::string unit;
  if (by_name) {
    if (options.arch.empty()) throw Error("probe", "--instruction needs --arch");
    instruction =
        emulator::require_instruction(options.arch, options.instruction, "probe",
                                      emulator::require_toolkit(options.toolkit, "--toolkit"));
    const emulator::Engine& engine = emulator::require_engine(options.engine, instruction);
    box = emulator::black_box(engine, instruction);
    unit = std::string(std::string_view(instruction.name)) + " of " +
           std::string(instruction.arch) + ", engine " + std::string(engine.name);
    auto answer = box.answer;
    box.answer = [answer, &interruption](std::span<const emulator::Question> list) {
      interruption.check();
      return answer(list);
    };
  } else {
    box = box_of_kernel(options, interruption);
    unit = formats::printable(options.kernel.command);
  }
  const ProbeReport report = emulator::probe(box, options.seed);
  box.a = report.a;
  box.b = report.b;
  box.c = report.c;
  box.d = report.d;
  interruption.check();
  if (report.explained) write_text(options.output, spec_of(report));
  const bool has_tree = !emulator::leaves(report.tree).empty();
  if (options.plot.asked() && has_tree)
    write_picture(options.plot.path, sum_tree_picture(report.tree, box.k));
  write_text(options.dot, emulator::tree_dot(report.tree, box.k));
  if (options.json) {
    print_json(report_json(unit, box, report));
  } else {
    print(unit, box, report);
  }
  if (options.plot.asked() && !has_tree)
    throw Error("--plot", "there is no tree to draw: " + report.tree_note);
  constexpr int status_not_found = 1;
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
      "Example: guardbit probe --exec 'python3 my_matmul.py' --a fp32 --d fp32 --k 32 --plot tree.pdf");
  command->callback([options, command, &status] {
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
