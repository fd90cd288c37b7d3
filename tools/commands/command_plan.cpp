#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "emulator/gemm/atlas/atlas.hpp"
#include "emulator/replay/plan_book.hpp"
#include "emulator/replay/product_shape.hpp"
#include "formats/support/error.hpp"
#include "formats/support/printable.hpp"
#include "formats/support/words.hpp"
#include "tools/commands/commands.hpp"
#include "tools/console/exit_status.hpp"
#include "tools/console/print_json.hpp"
#include "tools/products/plan_book_file.hpp"
#include "tools/products/plan_json.hpp"

namespace guardbit::tools {

namespace {

using emulator::atlas::Known;
using emulator::atlas::scope;

struct PlanOptions {
  emulator::atlas::StridedCall call;
  std::string layout = "NN", book,
              like = std::string(scope.library) + ":" + std::string(scope.arch);
  bool json = false;
};

void require_scope(const std::string& like) {
  const std::string ours = std::string(scope.library) + ":" + std::string(scope.arch);
  if (like != ours)
    throw formats::Error("--like",
                         "the atlas does not hold for " + formats::in_quotes(like) +
                             "; plans change with version and machine",
                         ours);
}

/// What the book has of the call: the plan that gave all of its recorded results.
const emulator::GemmPlan* recorded_plan(const emulator::replay::PlanBook& book,
                                        const emulator::atlas::StridedCall& call) {
  const auto* plans = book.find(emulator::replay::shape_of_call(call));
  if (plans == nullptr) return nullptr;
  const emulator::GemmPlan& plan = plans->front();
  // A book does not say whether TF32 was allowed. Its plan does where it multiplies in TF32.
  const bool is_tf32 = plan.unit.instruction.find("tf32") != std::string::npos;
  return is_tf32 && call.numbers == "fp32" ? nullptr : &plan;
}

emulator::atlas::Answer answer_of(const PlanOptions& options) {
  // Refuses what no library's call can be, in a book too.
  emulator::atlas::Answer answer =
      emulator::atlas::plan_of(emulator::atlas::call_of(options.call, "plan"));
  if (options.book.empty()) return answer;
  if (!std::filesystem::exists(options.book))
    throw formats::Error(formats::printable(options.book), "no such file");
  emulator::replay::PlanBook book;
  read_plan_book(options.book, book);
  if (const emulator::GemmPlan* plan = recorded_plan(book, options.call))
    answer = {*plan, Known::recorded, "the book has this call"};
  return answer;
}

void print(const PlanOptions& options, const emulator::atlas::Answer& answer) {
  const emulator::atlas::StridedCall& call = options.call;
  const bool is_known = answer.known != Known::unknown;
  if (options.json) {
    nlohmann::ordered_json j = {{"call",
                                 {{"op", call.op},
                                  {"m", call.m},
                                  {"n", call.n},
                                  {"k", call.k},
                                  {"batch", call.batch},
                                  {"dtype", call.numbers},
                                  {"a_stride", call.a_stride},
                                  {"b_stride", call.b_stride}}},
                                {"known", formats::word_of(answer.known)},
                                {"why", answer.why}};
    j["plan"] = is_known ? to_json(answer.plan) : nlohmann::ordered_json();
    j["holds_for"] = {{"library", scope.library},     {"arch", scope.arch},
                      {"framework", scope.framework}, {"driver", scope.driver},
                      {"device", scope.device},       {"multiprocessors", scope.multiprocessors}};
    print_json(j);
    return;
  }
  std::cout << call.op << ' ';
  if (call.batch != 1) std::cout << call.batch << " x ";
  std::cout << call.m << " x " << call.n << " x " << call.k << ", " << call.numbers << '\n'
            << "plan   " << (is_known ? emulator::to_text(answer.plan) : "none") << '\n'
            << "known  " << formats::word_of(answer.known) << ": " << answer.why << '\n';
  if (answer.known != Known::recorded)
    std::cout << "for    " << scope.library << ':' << scope.arch << ": " << describe(scope) << '\n';
}

int plan(PlanOptions& options, bool has_strides) {
  require_scope(options.like);
  if (!has_strides) {
    set_layout(options.call, options.layout, "--layout");
  } else if (options.call.a_stride.empty() || options.call.b_stride.empty()) {
    throw formats::Error("plan", "--a-stride and --b-stride go together");
  }
  const std::size_t rank = options.call.op == "bmm" ? 3 : 2;
  if (options.call.a_stride.size() != rank || options.call.b_stride.size() != rank)
    throw formats::Error("plan", formats::printable(options.call.op) + " needs " +
                                     std::to_string(rank) + " strides of each operand");
  const emulator::atlas::Answer answer = answer_of(options);
  print(options, answer);
  return answer.known == Known::unknown ? exit_mismatch : 0;
}

}  // namespace

void add_plan(CLI::App& app, int& status) {
  CLI::App* command = app.add_subcommand(
      "plan", "Say which plan a library takes for a matrix product, from the call alone");
  const auto options = std::make_shared<PlanOptions>();
  emulator::atlas::StridedCall& call = options->call;
  command->add_option("--call", call.op, "The operator: mm, addmm (bias of [N]) or bmm")
      ->required();
  command->add_option("--m", call.m, "Rows of A and D")->required();
  command->add_option("--n", call.n, "Columns of B and D")->required();
  command->add_option("--k", call.k, "Columns of A, rows of B")->required();
  command->add_option("--batch", call.batch, "Of bmm: number of products (default 1)");
  command
      ->add_option("--dtype", call.numbers,
                   "fp16, bf16, fp32, or tf32: fp32 where PyTorch is allowed TF32")
      ->required();
  CLI::Option* const layout = command->add_option(
      "--layout", options->layout,
      "A and B row-major (N) or column-major (T), without gaps: NN, NT, TN, TT (default NN)");
  CLI::Option* const a =
      command->add_option("--a-stride", call.a_stride, "Instead: strides of A, as in 2560,1");
  CLI::Option* const b = command->add_option("--b-stride", call.b_stride, "... and of B");
  a->delimiter(',')->excludes(layout);
  b->delimiter(',')->excludes(layout);
  command->add_option("--like", options->like,
                      "LIBRARY:ARCH (default cublas-13:sm_90, for which alone the atlas holds)");
  command->add_option("--book", options->book,
                      "A plan book of replay: the exact answer for the calls in it");
  command->add_flag("--json", options->json, "Print JSON");
  command->footer(
      "Known is recorded (the book has the call), rule (all recorded calls of its kind agree), nearest (as the recorded calls most like it; a guess) or unknown.\n"
      "Exit status: 0 a plan is known, 1 unknown, 2 a call for which the atlas does not hold.\n"
      "Example: guardbit plan --call mm --m 250 --n 4096 --k 2560 --dtype bf16 --layout NT");
  command->callback(
      [options, a, b, &status] { status = plan(*options, a->count() + b->count() > 0); });
}

}  // namespace guardbit::tools
