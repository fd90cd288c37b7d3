#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "formats/support/error.hpp"
#include "tools/commands/commands.hpp"
#include "tools/console/exit_status.hpp"
#include "tools/console/print_json.hpp"
#include "tools/plot/picture_file.hpp"
#include "tools/products/plans/call_plan.hpp"
#include "tools/products/plans/plan_map.hpp"
#include "tools/products/plans/plan_runs.hpp"

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

int plan_over_plane(const AskedCall& asked, const std::vector<VariedSize>& varied, bool as_json,
                    const PlotOptions& plot) {
  const PlanMap map = plan_map(asked, varied[0], varied[1]);
  if (plot.asked()) write_picture(plot.path, plan_map_picture(map, plot.width, plot.height));
  show(map, as_json);
  return map.are_known() ? 0 : exit_mismatch;
}

int plan(AskedCall asked, const Sizes& sizes, bool as_json, const PlotOptions& plot) {
  plot.require_valid();
  std::vector<VariedSize> varied;
  for (const auto& [name, text] : {std::pair{'m', sizes.m}, {'n', sizes.n}, {'k', sizes.k}}) {
    const SizeRange range = parse_size_range(text, std::string{"--"} + name);
    size_of(asked.call, name) = range.first;
    if (!range.is_one()) varied.push_back({name, range});
  }
  if (varied.size() > 2) throw formats::Error("plan", "at most two of --m, --n and --k are ranges");
  if (varied.size() == 2) return plan_over_plane(asked, varied, as_json, plot);
  if (plot.asked())
    throw formats::Error("--plot", "a map is drawn over two sizes",
                         "two of --m, --n and --k as ranges");
  if (varied.empty()) {
    const CallPlan found = plan_of_call(asked);
    show(found, as_json);
    return found.answer.known == emulator::atlas::Known::unknown ? exit_mismatch : 0;
  }
  const PlanRuns runs = plans_of_sizes(asked, varied[0].name, varied[0].range);
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
  const auto plot = std::make_shared<PlotOptions>();
  emulator::atlas::StridedCall& call = asked->call;
  command->add_option("--call", call.op, "The operator: mm, addmm (bias of [N]) or bmm")
      ->required();
  command
      ->add_option("--m", sizes->m,
                   "Rows of A and D; or 1:512 or 64:4096:64, where the plan changes as they grow")
      ->required();
  command
      ->add_option("--n", sizes->n,
                   "Columns of B and D; or a range. Two ranges: a map of the plane")
      ->required();
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
  add_plot_options(*command, *plot, "Draw the partial sums over a plane of sizes into this file",
                   false);
  command->add_flag("--json", *as_json, "Print JSON");
  command->footer(
      "Known is recorded (the book or the table of usual shapes has the call), rule (at least 998 of 1000 recorded calls of its kind agree), nearest (as the recorded calls most like it; a guess) or unknown.\n"
      "Exit status: 0 a plan is known, 1 unknown, 2 a call for which the atlas does not hold.\n"
      "Example: guardbit plan --call mm --m 250 --n 4096 --k 2560 --dtype bf16 --layout NT\n"
      "         guardbit plan --call mm --m 1:512 --n 4096 --k 4096 --dtype bf16 --layout NT\n"
      "         guardbit plan --call mm --m 16:4096:16 --n 16:4096:16 --k 4096 --dtype bf16 --layout NT --plot map.svg");
  command->callback(
      [asked, sizes, as_json, plot, &status] { status = plan(*asked, *sizes, *as_json, *plot); });
}

}  // namespace guardbit::tools
