#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "formats/support/error.hpp"
#include "tools/commands/commands.hpp"
#include "tools/console/exit_status.hpp"
#include "tools/console/print_json.hpp"
#include "tools/products/call_plan.hpp"
#include "tools/products/plan_runs.hpp"

namespace guardbit::tools {

namespace {

/// The sizes as they stand on the command line.
struct Sizes {
  std::string m, n, k;
};

template <class Answer>
void show(const Answer& answer, bool as_json) {
  if (as_json)
    print_json(to_json(answer));
  else
    print(std::cout, answer);
}

int plan(AskedCall asked, const Sizes& sizes, bool as_json) {
  const SizeRange m = parse_size_range(sizes.m, "--m"), n = parse_size_range(sizes.n, "--n"),
                  k = parse_size_range(sizes.k, "--k");
  asked.call.m = m.first;
  asked.call.n = n.first;
  asked.call.k = k.first;
  if (m.is_one() && n.is_one() && k.is_one()) {
    const CallPlan found = plan_of_call(asked);
    show(found, as_json);
    return found.answer.known == emulator::atlas::Known::unknown ? exit_mismatch : 0;
  }
  if (!m.is_one() + !n.is_one() + !k.is_one() > 1)
    throw formats::Error("plan", "only one of --m, --n and --k is a range");
  const char varied = !m.is_one() ? 'm' : !n.is_one() ? 'n' : 'k';
  const PlanRuns runs = plans_of_sizes(asked, varied, !m.is_one() ? m : !n.is_one() ? n : k);
  show(runs, as_json);
  return runs.are_known() ? 0 : exit_mismatch;
}

}  // namespace

void add_plan(CLI::App& app, int& status) {
  CLI::App* command = app.add_subcommand(
      "plan", "Say which plan a library takes for a matrix product, from the call alone");
  const auto asked = std::make_shared<AskedCall>();
  const auto sizes = std::make_shared<Sizes>();
  const auto as_json = std::make_shared<bool>(false);
  emulator::atlas::StridedCall& call = asked->call;
  command->add_option("--call", call.op, "The operator: mm, addmm (bias of [N]) or bmm")
      ->required();
  command
      ->add_option("--m", sizes->m,
                   "Rows of A and D; or 1:512, where the plan changes as they grow")
      ->required();
  command->add_option("--n", sizes->n, "Columns of B and D; or a range")->required();
  command->add_option("--k", sizes->k, "Columns of A, rows of B; or a range")->required();
  command->add_option("--batch", call.batch, "Of bmm: number of products (default 1)");
  command
      ->add_option("--dtype", call.numbers,
                   "fp16, bf16, fp32, or tf32: fp32 where PyTorch is allowed TF32")
      ->required();
  CLI::Option* const layout = command->add_option(
      "--layout", asked->layout,
      "A and B row-major (N) or column-major (T), without gaps: NN, NT, TN, TT (default NN)");
  CLI::Option* const a =
      command->add_option("--a-stride", call.a_stride, "Instead: strides of A, as in 2560,1");
  CLI::Option* const b = command->add_option("--b-stride", call.b_stride, "... and of B");
  a->delimiter(',')->excludes(layout);
  b->delimiter(',')->excludes(layout);
  command->add_option("--like", asked->like,
                      "LIBRARY:ARCH (default cublas-13:sm_90, for which alone the atlas holds)");
  command->add_option("--book", asked->book,
                      "A plan book of replay: the exact answer for the calls in it");
  command->add_flag("--json", *as_json, "Print JSON");
  command->footer(
      "Known is recorded (the book has the call), rule (at least 998 of 1000 recorded calls of its kind agree), nearest (as the recorded calls most like it; a guess) or unknown.\n"
      "Exit status: 0 a plan is known, 1 unknown, 2 a call for which the atlas does not hold.\n"
      "Example: guardbit plan --call mm --m 250 --n 4096 --k 2560 --dtype bf16 --layout NT\n"
      "         guardbit plan --call mm --m 1:512 --n 4096 --k 4096 --dtype bf16 --layout NT");
  command->callback([asked, sizes, as_json, &status] { status = plan(*asked, *sizes, *as_json); });
}

}  // namespace guardbit::tools
