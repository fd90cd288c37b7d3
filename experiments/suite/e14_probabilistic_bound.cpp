#include <cmath>

#include "experiments/accuracy/product_errors.hpp"
#include "experiments/harness/run.hpp"
#include "experiments/suite/suite.hpp"
#include "formats/support/words.hpp"

namespace guardbit::experiments {

namespace e14 {
namespace {

const double u32 = std::ldexp(1.0, -24);

/// That all of so many outputs stay within lambda sqrt(n) u has at least this probability, by
/// Hoeffding's bound: 1 - outputs * 2 exp(-lambda^2 / 2).
constexpr double confidence_missed = 1e-3;

double lambda_for(double outputs) {
  return std::sqrt(2 * std::log(2 * outputs / confidence_missed));
}

emulator::GemmPlan plan_of(std::string_view unit) {
  emulator::GemmPlan plan;
  // TF32 operands below are exact in both units, so that only their sums differ.
  if (unit == "tensor_core")
    plan.unit = {"sm_90", "wgmma.mma_async.sync.aligned.m64nNk8.f32.tf32.tf32"};
  return plan;
}

Outcome run(Run& run) {
  const Settings& s = run.settings();
  const auto lengths = s.integers("n");
  const auto& distributions = s.words("distribution");
  const auto& units = s.words("unit");
  const auto size = s.integer("MN");
  const double lambda = lambda_for(static_cast<double>(size * size));
  run.announce(lengths.size() * distributions.size() * units.size());
  Outcome outcome;
  outcome.figure = {"E14: FP32 sums, the worst-case and the probabilistic bound",
                    "n (products in each sum)", "largest |error| / (|A||B|)", true, true};
  for (const std::string& unit : units) {
    for (const std::string& distribution : distributions) {
      Curve curve{std::string(unit).append(", ").append(distribution)};
      for (const std::int64_t n : lengths) {
        const std::string key = std::string(unit)
                                    .append(" ")
                                    .append(distribution)
                                    .append(" n=")
                                    .append(std::to_string(n));
        const auto& error = run.point(key, [&] {
          return std::vector<double>{
              largest_error_share(run, plan_of(unit), {formats::tf32, distribution, size, n})};
        });
        curve.add(static_cast<double>(n), error[0]);
        Finding share{key + ": largest error / probabilistic bound", "",
                      error[0] / (lambda * std::sqrt(static_cast<double>(n)) * u32)};
        if (unit == "fma") {
          share.reference = Reference{.value = 1,
                                      .source = "Higham, Mary, SISC 41(5), A2815: lambda sqrt(n) u",
                                      .certainty = Certainty::recalled,
                                      .relation = Reference::Relation::at_most};
        }
        outcome.findings.push_back(share);
      }
      outcome.figure.curves.push_back(curve);
    }
  }
  Curve worst{"bound n u", {}, {}, Look::line, true},
      probable{"bound lambda sqrt(n) u", {}, {}, Look::line, true};
  for (const std::int64_t length : lengths) {
    const auto n = static_cast<double>(length);
    worst.add(n, n * u32);
    probable.add(n, lambda * std::sqrt(n) * u32);
    outcome.findings.push_back(
        {"n=" + std::to_string(length) + ": worst-case over probabilistic bound", "",
         std::sqrt(n) / lambda});
  }
  if (!lengths.empty()) {
    outcome.findings.back().reference =
        Reference{.value = 10,
                  .source = "arXiv 2411.18747, abstract: about an order of magnitude",
                  .certainty = Certainty::read,
                  .undecidable = "the abstract does not say for which n"};
  }
  outcome.figure.curves.push_back(worst);
  outcome.figure.curves.push_back(probable);
  outcome.notes.emplace_back(
      "The probabilistic bound takes rounding errors of mean zero for granted. "
      "A tensor core cuts its sums: "
      "with positive numbers every error has the same sign, their sum grows like n, and the bound does not apply.");
  return outcome;
}

}  // namespace
}  // namespace e14

Experiment probabilistic_bound() {
  using namespace e14;
  using Kind = Parameter::Kind;
  return {
      .name = "E14",
      .slug = "probabilistic_bound",
      .question =
          "Is the probabilistic error bound tighter than the worst-case one, and does it hold?",
      .method =
          "Matrices of TF32 numbers are multiplied with FP32 multiply-adds (rounded to nearest) and a Hopper tensor core (cut); "
          "the largest error over |A||B| is compared with lambda sqrt(n) u, "
          "lambda chosen so that all outputs stay below with a probability of 99.9 %.",
      .expected =
          "Multiply-adds stay below (recalled: Higham and Mary); the bound is about an order of magnitude tighter (arXiv 2411.18747, abstract read).",
      .parameters = {{"n", "products in each sum", "64:16384:x4", "256,4096", Kind::integer, true,
                      8, 65536},
                     {"MN", "rows of A and columns of B", "64", "32", Kind::integer, false, 4,
                      1024},
                     {"unit", "that multiplies", "fma,tensor_core", "", Kind::word, true, 0, 0,
                      "fma,tensor_core"},
                     {"distribution", "of the numbers", "normal,uniform", "", Kind::word, true, 0,
                      0, formats::choices_of<Distribution>()}},
      .run = run,
  };
}

}  // namespace guardbit::experiments
