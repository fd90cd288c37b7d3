#include "experiments/suite/fp8_products.hpp"

#include <algorithm>
#include <cmath>

#include "experiments/accuracy/errors.hpp"
#include "experiments/harness/run.hpp"

namespace guardbit::experiments {

namespace {

constexpr std::string_view h200 = "cuBLAS on an H200, torch 2.11";

/// Largest error and bias of one repeat, in percent.
std::vector<double> errors_of_repeat(Run& run, const Fp8Sweep& sweep, std::int64_t repeat) {
  const Distribution numbers = distribution_of(sweep.distribution);
  const std::string name = " of repeat " + std::to_string(repeat);
  emulator::GemmProblem problem;
  problem.a =
      run.draws("A" + name).matrix(formats::e4m3, sweep.size, sweep.k, numbers, run.threads());
  problem.b =
      run.draws("B" + name).matrix(formats::e4m3, sweep.k, sweep.size, numbers, run.threads());
  const Errors e = errors_of(values_of(run.multiply(sweep.plan, problem)),
                             values_of(run.multiply(exact_plan(), problem)));
  const bool relative = numbers == Distribution::uniform;
  return {100 * (relative ? e.largest_relative : e.largest_over_mean()), 100 * e.bias()};
}

/// Compared with one run on the hardware with other random numbers.
Reference reference_of(std::string_view printed, const Repeats& measured) {
  Reference reference = reference_of_repeats(printed, measured, "recorded");
  reference.source = h200;
  reference.certainty = Certainty::measured;
  return reference;
}

}  // namespace

emulator::GemmPlan fp8_fast_plan() {
  emulator::GemmPlan plan;
  plan.unit = {"sm_90", "wgmma.mma_async.sync.aligned.m64nNk32.f32.e4m3.e4m3"};
  return plan;
}

std::vector<Finding> fp8_findings(Run& run, const Fp8Sweep& sweep) {
  Repeats largest, bias;
  for (std::int64_t repeat = 0; repeat < sweep.repeats; ++repeat) {
    const auto& values = run.point(sweep.key + " repeat " + std::to_string(repeat),
                                   [&] { return errors_of_repeat(run, sweep, repeat); });
    largest.values.push_back(values[0]);
    bias.values.push_back(values[1]);
  }
  const bool relative = sweep.distribution == "uniform";
  std::vector<Finding> findings = {
      {sweep.key + (relative ? ": largest relative error" : ": largest error / mean |exact|"), "%",
       largest.median()}};
  if (relative) findings.push_back({sweep.key + ": bias", "%", bias.median()});
  if (const RecordedFp8* const r = sweep.recorded; r != nullptr) {
    findings[0].reference = reference_of(r->largest, largest);
    // How many outputs were recorded is not known, but not so few.
    if (sweep.size < 128)
      findings[0].reference->undecidable = "the largest of so few outputs is smaller";
    if (relative && !r->bias.empty()) findings[1].reference = reference_of(r->bias, bias);
  }
  return findings;
}

}  // namespace guardbit::experiments
