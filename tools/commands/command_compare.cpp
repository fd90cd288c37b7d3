#include <CLI/CLI.hpp>
#include <chrono>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "emulator/capture/product_capture.hpp"
#include "formats/format_catalogue.hpp"
#include "formats/support/error.hpp"
#include "formats/support/printable.hpp"
#include "tools/commands/commands.hpp"
#include "tools/commands/refused_options.hpp"
#include "tools/console/elapsed.hpp"
#include "tools/console/interruption.hpp"
#include "tools/console/print_json.hpp"
#include "tools/console/terminal.hpp"
#include "tools/console/threads_option.hpp"
#include "tools/plot/picture_file.hpp"
#include "tools/products/compared_result.hpp"
#include "tools/products/error_picture.hpp"
#include "tools/products/error_report.hpp"
#include "tools/products/operand_file.hpp"
#include "tools/products/product_files.hpp"
#include "tools/products/spec_file.hpp"

namespace guardbit::tools {

namespace {

using emulator::CodeMatrix;
using emulator::GemmProblem;
using formats::Error;

struct CompareOptions {
  std::string d, reference, plan;
  GemmPlaces places;
  std::vector<std::string> specs;
  std::optional<double> alpha, beta, most_ulps;
  PlotOptions plot;
  int threads = 0;
  bool exact = false, json = false, no_map = false;
};

CodeMatrix read_result(const std::string& option, const std::string& place,
                       const std::string& from) {
  const formats::Tensor tensor = read_operand(option, "d", place, formats::fp32, from);
  const std::string where = (option.empty() ? "" : option + " ") + formats::printable(place);
  if (tensor.packing != formats::Packing::container)
    throw Error(where, "packed elements are not taken here");
  if (formats::element_count(tensor.shape) == 0) throw Error(where, "the tensor is empty");
  return result_matrix(tensor);
}

/// A capture holds result and operands; otherwise they come from the options.
ComparedResult read_case(const CompareOptions& options) {
  ComparedResult x;
  x.where = formats::printable(options.d);
  const bool by_operands = !options.places.a.empty() || !options.places.b.empty();
  if (!by_operands && !options.exact && options.plan.empty()) {
    x.d = read_result("", options.d, options.places.from);
    return x;
  }
  if (by_operands) {
    if (options.places.a.empty() || options.places.b.empty())
      throw Error("compare", "needs --a and --b, both of them");
    x.d = read_result("", options.d, options.places.from);
    x.problem = read_gemm_operands(options.places).problem;
    x.beta = x.problem->c.empty() ? 0 : 1;
  } else {
    for (const char* const ending : {".npy", ".npz"})
      if (options.d.ends_with(ending))
        throw Error("compare", std::string(options.exact ? "--exact" : "--plan") +
                                   " needs --a and --b: " + formats::printable(options.d) +
                                   " is no capture, which would hold the operands");
    const emulator::GemmCapture capture = emulator::read_gemm_capture(options.d);
    x.d = capture.d;
    x.problem = capture.lowered({});
    x.alpha = capture.alpha, x.beta = capture.beta;
    x.activation = capture.activation;
  }
  require_shape_of_product(x);
  return x;
}

int compare(const CompareOptions& options) {
  if (options.exact == !options.reference.empty())
    throw Error("compare", "needs REF or --exact, one of them");
  if (options.most_ulps && !(*options.most_ulps >= 0)) throw Error("--max-ulp", "is below zero");
  options.plot.require_valid();
  const auto start = std::chrono::steady_clock::now();
  std::optional<EndAtOnce> computing(std::in_place);
  load_specs(options.specs);
  ComparedResult x = read_case(options);
  set_plan(x, options.plan, !options.places.a.empty(), {options.alpha, options.beta});
  std::optional<CodeMatrix> reference;
  if (!options.exact) reference = read_result("REF", options.reference, options.places.from);
  constexpr std::size_t steps = 1000;
  ProgressLine progress("comparing", steps);
  const auto go_on = [&](double done) {
    progress.update(static_cast<std::size_t>(done * steps));
    return true;
  };
  ErrorReport report = error_report(x, reference, options.threads, go_on);
  computing.reset();
  report.file = options.d;
  if (!options.exact) report.reference = options.reference;
  report.seconds = seconds_since(start);
  if (options.plot.asked())
    write_picture(options.plot.path, error_picture(report, options.plot.chart()));
  if (options.json) {
    print_json(to_json(report));
  } else {
    print(std::cout, report, !options.no_map);
  }
  const bool within = !options.most_ulps || (report.analysis.largest_ulps <= *options.most_ulps &&
                                             report.analysis.specials.disagreements() == 0);
  const bool holds = !report.analysis.deterministic || report.analysis.deterministic->holds();
  return within && holds ? 0 : 1;
}

}  // namespace

void add_compare(CLI::App& app, int& status) {
  CLI::App* command = app.add_subcommand(
      "compare", "Say how far a result is from another one, or from the exact product");
  const auto options = std::make_shared<CompareOptions>();
  command
      ->add_option(
          "D", options->d,
          "The result, as FILE or FILE:TENSOR; with --exact it may be a capture of kind gemm or conv2d, which holds A and B")
      ->required();
  command->add_option("REF", options->reference, "What it should be, in any format");
  command->add_flag("--exact", options->exact,
                    "It should be alpha * A * B + beta * C + bias without any rounding");
  command->add_option("--a", options->places.a, "A: [M, K] or [B, M, K], as FILE or FILE:TENSOR");
  command->add_option("--b", options->places.b, "B: [K, N] or [B, K, N]");
  add_operand_options(*command, options->places);
  command->add_option("--alpha", options->alpha, "Instead of the plan's or the capture's");
  command->add_option("--beta", options->beta, "Default 1 with --c");
  command->add_option("--plan", options->plan,
                      "How it was computed, as explain prints it: error bounds of that plan");
  add_spec_option(*command, options->specs);
  command->add_option("--max-ulp", options->most_ulps,
                      "Exit with 1 when an error is larger, or an infinity or NaN is wrong");
  add_plot_options(
      *command, options->plot,
      "Draw a map of the errors, and how often each distance occurs (axes and range are of these), into this file");
  add_threads_option(*command, options->threads);
  command->add_flag("--no-map", options->no_map, "Do not print the map of errors");
  command->add_flag("--json", options->json, "Print JSON");
  command->footer(
      "An ulp is a unit in the last place of the reference in D's format.\n"
      "Exit status: 0; 1 where the plan's deterministic bound does not hold, or see --max-ulp; 2 bad input; 130 interrupted.\n"
      "Example: guardbit compare d.npy d_fp64.npy\n"
      "Example: guardbit compare d.npy --a a.npy --b b.npy --exact --plot errors.pdf --y log\n"
      "Example: guardbit compare tests/golden/gemm/mm_tf32_72x88x520.safetensors --exact --plan 'sm_90/wgmma.mma_async.sync.aligned.m64nNk8.f32.tf32.tf32 residue_first=16 split=8x4:ceil d=fp32'");
  command->callback([options, command, &status] {
    if (options->places.a.empty() && options->places.b.empty())
      refuse_unread(*command, {"--c", "--bias", "--scale-a", "--scale-b", "--sparse"},
                    "with --a and --b");
    if (options->places.a.empty() && !options->exact && options->plan.empty())
      refuse_unread(*command, {"--alpha", "--beta"}, "with --exact or --plan");
    status = compare(*options);
  });
}

}  // namespace guardbit::tools
