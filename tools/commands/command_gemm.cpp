#include <CLI/CLI.hpp>
#include <chrono>
#include <iomanip>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "emulator/gemm/gemm.hpp"
#include "emulator/gemm/plan_engine.hpp"
#include "emulator/gemm/plan_library.hpp"
#include "emulator/gemm/usual_plan.hpp"
#include "formats/files/tensor_output.hpp"
#include "formats/support/error.hpp"
#include "formats/support/printable.hpp"
#include "formats/support/words.hpp"
#include "formats/tensors/storage.hpp"
#include "tools/catalogue/format_facts.hpp"
#include "tools/commands/commands.hpp"
#include "tools/commands/refused_options.hpp"
#include "tools/console/columns.hpp"
#include "tools/console/counted.hpp"
#include "tools/console/elapsed.hpp"
#include "tools/console/interruption.hpp"
#include "tools/console/print_json.hpp"
#include "tools/console/terminal.hpp"
#include "tools/console/threads_option.hpp"
#include "tools/products/plans/call_plan.hpp"
#include "tools/products/plans/plan_json.hpp"
#include "tools/products/product_files.hpp"
#include "tools/products/spec_file.hpp"

namespace guardbit::tools {

namespace {

struct GemmOptions {
  GemmPlaces places;
  std::string plan, like, arch, to, output;
  std::string engine = "auto";
  std::vector<std::string> specs;
  std::optional<double> alpha, beta;
  int threads = 0;
  bool tf32 = false, json = false, list = false, markdown = false;
};

void list_plans(const GemmOptions& options) {
  using Plan = emulator::LibraryPlan;
  const Columns<Plan> columns = {
      {"library", "library", Side::left, [](const Plan& p) { return p.library; }},
      {"arch", "machine", Side::left, [](const Plan& p) { return p.arch; }},
      {"kernel", "kernel", Side::left, [](const Plan& p) { return p.kernel; }, {}, 0, true},
      {"plan", "plan", Side::left, [](const Plan& p) { return p.plan; }, {}, 0, true},
      {"varies", "varies", Side::left, [](const Plan& p) { return p.note; }}};
  if (options.json) {
    print_json(columns.json_list(emulator::library_plans()));
  } else {
    columns.print(std::cout, emulator::library_plans(),
                  options.markdown ? Form::markdown : Form::terminal);
  }
}

/// A plan, and where it comes from: of the table what varies with the call, of the atlas how it is
/// known.
struct Choice {
  emulator::GemmPlan plan;
  std::string_view varies;
  std::string known, why;
};

/// What the atlas says of the call, where it holds such calls.
std::optional<emulator::atlas::Answer> answer_of(const GemmOptions& options,
                                                 const GemmInput& input) {
  if (options.like != AskedCall{}.like || options.alpha || options.beta) return std::nullopt;
  std::optional<AskedCall> asked = call_of(input);
  if (!asked || (options.tf32 && asked->call.numbers != "fp32")) return std::nullopt;
  if (options.tf32) asked->call.numbers = "tf32";
  return plan_of_call(*asked).answer;
}

Choice plan_like(const GemmOptions& options, const GemmInput& input) {
  const emulator::LibraryPlan& row = emulator::require_library_plan(
      options.like, input.problem.a.format, input.problem.b.format, "--like");
  Choice choice = {emulator::parse_plan(row.plan, "table of plans"), row.note, {}, {}};
  if (const auto answer = answer_of(options, input)) {
    choice.known = formats::word_of(answer->known);
    choice.why = answer->why;
    if (answer->known != emulator::atlas::Known::unknown) {
      choice.plan = answer->plan;
      choice.varies = {};
    } else if (options.tf32) {
      throw formats::Error("--tf32", "no plan is known: " + answer->why, "--plan, --arch");
    }
  } else if (options.tf32) {
    throw formats::Error("--tf32", "is for FP32 operands alone, without C and scales");
  }
  return choice;
}

Choice plan_of(const GemmOptions& options, const GemmInput& input) {
  const emulator::GemmProblem& problem = input.problem;
  const auto named = [](const std::string& text) { return text.empty() ? 0 : 1; };
  if (named(options.plan) + named(options.like) + named(options.arch) != 1)
    throw formats::Error("gemm", "needs --plan, --like or --arch, one of them");
  Choice choice;
  if (!options.arch.empty()) {
    const formats::Format& a = problem.a.format;
    const formats::Format to =
        options.to.empty() ? emulator::usual_result(a) : require_element_format(options.to, "--to");
    choice.plan =
        emulator::usual_plan(options.arch, a, problem.b.format, to, options.tf32, "--arch");
  } else if (options.plan.empty()) {
    choice = plan_like(options, input);
  } else {
    choice.plan = emulator::parse_plan(options.plan, "--plan");
  }
  if (options.alpha) choice.plan.epilogue.alpha = *options.alpha;
  if (options.beta) choice.plan.epilogue.beta = *options.beta;
  return choice;
}

void print(const GemmOptions& options, const Choice& choice, const emulator::GemmProblem& problem,
           std::string_view engine, double seconds) {
  const std::int64_t outputs = problem.a.batch * problem.m() * problem.n();
  if (options.json) {
    nlohmann::ordered_json j = {{"file", options.output},
                                {"m", problem.m()},
                                {"n", problem.n()},
                                {"k", problem.k()},
                                {"batch", problem.a.batch},
                                {"outputs", outputs},
                                {"plan", to_json(choice.plan)},
                                {"engine", engine},
                                {"seconds", seconds}};
    if (!choice.varies.empty()) j["varies"] = choice.varies;
    if (!choice.known.empty()) {
      j["known"] = choice.known;
      j["why"] = choice.why;
    }
    print_json(j);
    return;
  }
  if (problem.a.batch != 1) std::cout << problem.a.batch << " x ";
  std::cout << problem.m() << " x " << problem.n() << " x " << problem.k() << ", "
            << counted(outputs, "output") << ", engine " << engine << ", " << std::fixed
            << std::setprecision(2) << seconds << " s: " << formats::printable(options.output)
            << '\n'
            << "plan  " << emulator::to_text(choice.plan) << '\n';
  if (!choice.known.empty()) std::cout << "known " << choice.known << ": " << choice.why << '\n';
  if (!choice.varies.empty())
    std::cout << "      varies with the shape and the call: " << choice.varies
              << "; --plan says which\n";
}

/// The file that appears with all of D.
formats::TensorOutput output_of_d(const GemmOptions& options, const emulator::GemmPlan& plan,
                                  const GemmInput& input) {
  const emulator::GemmProblem& x = input.problem;
  std::vector<std::int64_t> shape = {x.m(), x.n()};
  if (input.batched) shape.insert(shape.begin(), x.a.batch);
  formats::Tensor d;
  d.name = "d";
  d.format = plan.epilogue.output;
  d.packing = formats::Packing::container;
  d.shape = std::move(shape);
  return {options.output, {}, {std::move(d)}};
}

int gemm(const GemmOptions& options) {
  if (options.list) {
    list_plans(options);
    return 0;
  }
  if (options.places.a.empty() || options.places.b.empty() || options.output.empty())
    throw formats::Error("gemm", "needs A, B and -o");
  load_specs(options.specs);
  const GemmInput input = read_gemm_operands(options.places);
  const Choice choice = plan_of(options, input);
  const emulator::GemmPlan& plan = choice.plan;
  if (plan.epilogue.beta != 0 && input.problem.c.empty())
    throw formats::Error("gemm", "the plan has a beta, so --c is needed");
  if (plan.epilogue.beta == 0 && !input.problem.c.empty() && !options.beta)
    throw formats::Error("--c", "is not read: the plan has no beta; --beta 1 adds all of it");
  if (!options.plan.empty() && plan.convolution != emulator::ConvolutionOrder{})
    throw formats::Error("--plan", "conv is not read: A and B are matrices, not a convolution's");
  if (options.alpha && plan.epilogue.addition == emulator::Epilogue::Addition::initial &&
      !plan.epilogue.scales_operand())
    throw formats::Error("--alpha",
                         "is not read: nothing multiplies a sum that begins with C (add=initial)");
  const std::string_view engine = emulator::plan_engine(options.engine, plan).name;
  const Interruption interruption;
  formats::TensorOutput output = output_of_d(options, plan, input);
  const auto start = std::chrono::steady_clock::now();
  ProgressLine progress("multiplying", static_cast<std::size_t>(input.problem.m()));
  emulator::ExecuteOptions how = {engine, options.threads, [&](std::int64_t rows) {
                                    progress.update(static_cast<std::size_t>(rows));
                                    return !interruption.asked_for();
                                  }};
  how.memory = output.memory(0);
  const emulator::CodeMatrix d = emulator::execute(plan, input.problem, how);
  interruption.check(": nothing written");
  if (how.memory.empty()) {
    const formats::TensorWriter writer = output.writer(0);
    writer.write(
        0, formats::with_packing(emulator::tensor_of(d, "d", {d.size()}), writer.packing).bytes);
  }
  output.commit();
  const double seconds = seconds_since(start);
  print(options, choice, input.problem, engine, seconds);
  return 0;
}

}  // namespace

void add_gemm(CLI::App& app, int& status) {
  CLI::App* command =
      app.add_subcommand("gemm", "Multiply matrices as a library would, by a plan, bit for bit");
  const auto options = std::make_shared<GemmOptions>();
  command->add_option("A", options->places.a, "A: [M, K] or [B, M, K], as FILE or FILE:TENSOR");
  command->add_option("B", options->places.b, "B: [K, N] or [B, K, N]");
  add_operand_options(*command, options->places);
  command->add_option("--plan", options->plan, "The plan, as explain prints it");
  command->add_option(
      "--like", options->like,
      "LIBRARY:ARCH[:KERNEL]: what the library takes for row-major operands of these sizes, or a kernel of the table");
  command->add_option(
      "--arch", options->arch,
      "One ascending chain of the instruction that libraries of this machine take for these operands");
  command->add_option(
      "--to", options->to,
      "With --arch: the format of D (default A's; of 8 bits and fewer fp32 or int32)");
  command->add_flag("--tf32", options->tf32,
                    "With --arch or --like cublas-13:sm_90: multiply FP32 operands in TF32");
  add_spec_option(*command, options->specs);
  command->add_option(
      "--engine", options->engine,
      "Engine that computes (default: the fastest model that can; host: a CUDA core's multiply-adds)");
  command->add_option("--alpha", options->alpha, "Instead of the plan's");
  command->add_option("--beta", options->beta, "Instead of the plan's");
  command->add_option("-o,--output", options->output, "Where D goes: .npy, .npz or .safetensors");
  add_threads_option(*command, options->threads);
  command->add_flag("--list", options->list, "Print the table of plans seen in libraries");
  command->add_flag("--markdown", options->markdown, "With --list: as a Markdown table");
  command->add_flag("--json", options->json, "Print JSON");
  command->footer(
      "A plan is UNIT key=value ...; docs/GEMM.md explains the keys.\n"
      "Example: guardbit gemm a.safetensors b.safetensors --plan 'sm_90/wgmma.mma_async.sync.aligned.m64nNk16.f32.f16.f16 split=3x64:ceil d=fp16' -o d.npy\n"
      "Example: guardbit gemm a.safetensors b.safetensors --like cublas-13:sm_90 -o d.npy\n"
      "Example: guardbit gemm a.npy b.npy --arch sm_100 -o d.npy");
  command->callback([options, command, &status] {
    if (options->arch.empty()) refuse_unread(*command, {"--to"}, "with --arch");
    if (options->arch.empty() && options->like != AskedCall{}.like)
      refuse_unread(*command, {"--tf32"}, "with --arch or --like " + AskedCall{}.like);
    status = gemm(*options);
  });
}

}  // namespace guardbit::tools
