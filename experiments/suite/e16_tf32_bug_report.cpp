#include <array>
#include <cmath>

#include "experiments/accuracy/error_norms.hpp"
#include "experiments/accuracy/product_errors.hpp"
#include "experiments/harness/repeats.hpp"
#include "experiments/harness/run.hpp"
#include "experiments/suite/suite.hpp"

namespace guardbit::experiments {

namespace e16 {
namespace {

constexpr std::int64_t k = 1536, columns = 384, reported_rows = 64 * 197;

/// Largest difference over the largest output, as the report states it: TF32 from FP64, FP32 from
/// FP64, TF32 from FP32.
std::vector<double> differences(Run& run, std::int64_t rows, std::int64_t repeat) {
  const std::string name = " of repeat " + std::to_string(repeat);
  emulator::GemmProblem problem;
  problem.a = run.draws("x" + name)
                  .matrix(formats::fp32, rows, k, Distribution::normal, run.threads(), 1000);
  problem.b = run.draws("w" + name)
                  .matrix(formats::fp32, k, columns, Distribution::normal, run.threads(), 50);
  problem.bias = run.draws("b" + name)
                     .matrix(formats::fp32, 1, columns, Distribution::normal, run.threads(), 50);
  run.uses(problem.bias);
  emulator::GemmPlan tf32;
  tf32.unit = {"sm_80", "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32"};
  const auto exact = values_of(run.multiply(exact_plan(), problem));
  const auto rounded = values_of(run.multiply(tf32, problem));
  const auto plain = values_of(run.multiply({}, problem));
  const Errors a = errors_of(rounded, exact), b = errors_of(plain, exact),
               c = errors_of(rounded, plain);
  return {a.largest / a.largest_exact, b.largest / b.largest_exact, c.largest / c.largest_exact};
}

Outcome run(Run& run) {
  const auto rows = run.settings().integer("rows"), repeats = run.settings().integer("repeats");
  run.announce(static_cast<std::size_t>(repeats));
  std::array<Repeats, 3> found;
  for (std::int64_t repeat = 0; repeat < repeats; ++repeat) {
    const auto& values = run.point("repeat " + std::to_string(repeat),
                                   [&] { return differences(run, rows, repeat); });
    for (std::size_t i = 0; i < found.size(); ++i) found[i].values.push_back(values[i]);
  }
  const auto reference = [&](std::string_view printed, const Repeats& measured,
                             std::string source) {
    Reference reported = reference_of_repeats(printed, measured, "printed");
    reported.source = std::move(source);
    reported.certainty = Certainty::read;
    reported.undecidable = rows == reported_rows ? "" : "fewer or more rows than reported";
    return reported;
  };
  Outcome outcome;
  outcome.findings = {
      {"TF32 against FP64", "", found[0].median(),
       reference("2.89e-4", found[0], "tensorflow PR 127577, simulated")},
      {"FP32 against FP64", "", found[1].median(),
       Reference{
           .value = 4.4e-7,
           .source = "tensorflow PR 127577",
           .certainty = Certainty::read,
           .undecidable =
               "the order in which NumPy's BLAS added is not known; here it is one chain over K"}},
      {"TF32 against FP32", "", found[2].median(),
       reference("2.9477e-4", found[2], "tensorflow issue 127346, GPU against CPU")}};
  outcome.figure = {"E16: differences of one layer, and what was reported", "pair",
                    "largest difference / largest output", false, true};
  Curve drawn{"emulated", {}, {}, Look::points}, known{"reported", {}, {}, Look::points, true};
  for (std::size_t i = 0; i < found.size(); ++i) {
    const Finding& finding = outcome.findings[i];
    const auto row = static_cast<double>(i);
    outcome.figure.categories.push_back(finding.key);
    for (const double difference : found[i].values) drawn.add(row, difference);
    known.add(row, finding.reference->value);
  }
  outcome.figure.curves = {drawn, known};
  outcome.notes.emplace_back("The reported difference is what TF32 does to these shapes: no bug.");
  return outcome;
}

}  // namespace
}  // namespace e16

Experiment tf32_bug_report() {
  using namespace e16;
  using Kind = Parameter::Kind;
  return {
      .name = "E16",
      .slug = "tf32_bug_report",
      .question = "Is the CPU/GPU discrepancy of tensorflow issue 127346 a bug?",
      .method =
          "The reported layer, x [64 * 197, 1536] of N(0, 1000), w of N(0, 50), "
          "bias of N(0, 50), on an Ampere tensor core in TF32, in FP32 and in FP64; "
          "the largest difference over the largest output.",
      .expected =
          "GPU against CPU 2.9477e-4 (issue 127346, read); simulated TF32 against FP64 2.89e-4, FP32 4.4e-7 (PR 127577, read).",
      .parameters = {{"rows", "of x", "12608", "1024", Kind::integer, false, 16, 100000},
                     {"repeats", "with other random numbers", "3", "4", Kind::integer, false, 3,
                      100}},
      .run = run,
  };
}

}  // namespace guardbit::experiments
