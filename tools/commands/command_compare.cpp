#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "emulator/capture/product_capture.hpp"
#include "experiments/accuracy/error_norms.hpp"
#include "experiments/accuracy/forward_errors.hpp"
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
#include "tools/products/error_picture.hpp"
#include "tools/products/error_report.hpp"
#include "tools/products/operand_file.hpp"
#include "tools/products/product_files.hpp"
#include "tools/products/spec_file.hpp"

namespace guardbit::tools {

namespace {

using emulator::CodeMatrix;
using emulator::GemmPlan;
using emulator::GemmProblem;
using experiments::Deviation;
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

/// A result with what it was computed from, where that is known.
struct Case {
  CodeMatrix d;
  std::optional<GemmProblem> problem;
  std::optional<GemmPlan> plan;
  double alpha = 1, beta = 0;
  emulator::Activation activation = {};
};

CodeMatrix read_result(const std::string& option, const std::string& place,
                       const std::string& from) {
  const formats::Tensor tensor = read_operand(option, "d", place, formats::fp32, from);
  const std::string where = (option.empty() ? "" : option + " ") + formats::printable(place);
  if (tensor.packing != formats::Packing::container)
    throw Error(where, "packed elements are not taken here");
  if (formats::element_count(tensor.shape) == 0) throw Error(where, "the tensor is empty");
  if (tensor.shape.size() == 2 || tensor.shape.size() == 3) return emulator::matrix_of(tensor);
  // A number is one element, a vector one row; of more dimensions the last two are rows and
  // columns.
  formats::Tensor flat = tensor;
  const std::int64_t count = formats::element_count(tensor.shape),
                     columns = tensor.shape.empty() ? 1 : tensor.shape.back();
  const std::int64_t rows = tensor.shape.size() <= 1 ? 1 : tensor.shape[tensor.shape.size() - 2];
  flat.shape = {count / (rows * columns), rows, columns};
  return emulator::matrix_of(flat);
}

void require_shape(const CodeMatrix& d, std::int64_t batch, std::int64_t rows, std::int64_t columns,
                   const std::string& where, const std::string& of) {
  if (d.batch == batch && d.rows == rows && d.columns == columns) return;
  const auto text = [](std::int64_t g, std::int64_t i, std::int64_t j) {
    return (g == 1 ? "" : std::to_string(g) + " of ") + std::to_string(i) + " x " +
           std::to_string(j);
  };
  throw Error(where, "is " + text(d.batch, d.rows, d.columns) + " where " + of + " is " +
                         text(batch, rows, columns));
}

/// A capture holds result and operands; otherwise they come from the options.
Case read_case(const CompareOptions& options) {
  Case x;
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
  require_shape(x.d, x.problem->a.batch, x.problem->m(), x.problem->n(),
                formats::printable(options.d), "A * B");
  return x;
}

void set_plan(const CompareOptions& options, Case& x) {
  if (!options.plan.empty()) {
    x.plan = emulator::parse_plan(options.plan, "--plan");
    if (!options.places.a.empty()) {
      x.alpha = x.plan->epilogue.alpha;
      x.activation = x.plan->epilogue.activation;
      if (x.plan->epilogue.beta != 0) x.beta = x.plan->epilogue.beta;
    }
  }
  // A chain that begins with its addend has no alpha.
  if (x.plan && x.plan->epilogue.addition == emulator::Epilogue::Addition::initial &&
      !x.plan->epilogue.scales_operand() && !options.places.a.empty())
    x.alpha = 1;
  x.alpha = options.alpha.value_or(x.alpha);
  x.beta = options.beta.value_or(x.beta);
  if (x.beta != 0 && x.problem && x.problem->c.empty())
    throw Error("compare", "there is a beta, so --c is needed");
  if (!x.plan) return;
  x.plan->epilogue.alpha = x.alpha;
  x.plan->epilogue.beta = x.beta;
  // The plan may have another form of what was asked for.
  if (function_of(x.plan->epilogue.activation) != function_of(x.activation))
    x.plan->epilogue.activation = x.activation;
  if (x.plan->epilogue.output != x.d.format)
    throw Error(formats::printable(options.d), "is " + formats::name_of(x.d.format) +
                                                   " and the plan's result " +
                                                   formats::name_of(x.plan->epilogue.output));
}

/// Deviations from the reference; none when interrupted.
std::vector<Deviation> deviations_of(const CompareOptions& options, const Case& x,
                                     const Interruption& interruption) {
  if (!options.exact) {
    const CodeMatrix reference = read_result("REF", options.reference, options.places.from);
    require_shape(x.d, reference.batch, reference.rows, reference.columns,
                  formats::printable(options.d), "the reference");
    return experiments::deviations(x.d, reference, formats::printable(options.d));
  }
  constexpr std::size_t steps = 1000;
  ProgressLine progress("comparing", steps);
  const auto go_on = [&](double done) {
    progress.update(static_cast<std::size_t>(done * steps));
    return !interruption.asked_for();
  };
  return experiments::exact_deviations(x.d, *x.problem, x.alpha, x.beta, options.threads,
                                       formats::printable(options.d), go_on, x.activation);
}

ErrorReport report_of(const CompareOptions& options, const Case& x,
                      std::vector<Deviation> deviations) {
  ErrorReport report;
  report.file = options.d;
  report.reference = options.exact ? "exact" : options.reference;
  report.d = x.d;
  report.deviations = std::move(deviations);
  report.plan = x.plan;
  std::vector<double> bound_sums;
  std::optional<experiments::ErrorBound> bound;
  const std::string where = formats::printable(options.d);
  if (x.problem)
    report.sums = experiments::magnitudes(*x.problem, x.alpha, x.beta, options.threads, where);
  if (x.plan) {
    bound = report.bound = experiments::error_bound(*x.plan, *x.problem, "--plan");
    bound_sums = experiments::magnitudes(*x.problem, x.alpha, x.beta, options.threads, where,
                                         bound->least_a, bound->least_b);
    report.has_small_factors =
        !std::equal(bound_sums.begin(), bound_sums.end(), report.sums.begin(),
                    [](double with_least, double sum) { return !(with_least > sum); });
  }
  report.analysis =
      experiments::analyse(report.deviations, x.d.format, report.sums, bound, bound_sums);
  return report;
}

int compare(const CompareOptions& options) {
  if (options.exact == !options.reference.empty())
    throw Error("compare", "needs REF or --exact, one of them");
  if (options.most_ulps && !(*options.most_ulps >= 0)) throw Error("--max-ulp", "is below zero");
  options.plot.require_valid();
  const auto start = std::chrono::steady_clock::now();
  const Interruption interruption;
  load_specs(options.specs);
  Case x = read_case(options);
  set_plan(options, x);
  std::vector<Deviation> deviations = deviations_of(options, x, interruption);
  interruption.check();
  ErrorReport report = report_of(options, x, std::move(deviations));
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
