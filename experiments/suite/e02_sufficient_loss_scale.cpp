#include <algorithm>
#include <cmath>

#include "emulator/gemm/scalar.hpp"
#include "experiments/harness/run.hpp"
#include "experiments/suite/recorded_traces.hpp"
#include "experiments/suite/suite.hpp"

namespace guardbit::experiments {

namespace e02 {
namespace {

/// For every scale: share of the sum of magnitudes that becomes zero, and whether any number
/// overflows.
std::vector<double> losses(const StepGradients& gradients,
                           const std::vector<std::int64_t>& scales) {
  std::vector<double> result;
  for (const std::int64_t scale : scales) {
    double lost = 0, all = 0, overflows = 0;
    for (const auto& tensor : gradients.tensors) {
      for (const double x : tensor) {
        const double y = emulator::scalar::rounded(
            formats::fp16,
            emulator::scalar::rounded(formats::fp32, std::ldexp(x, static_cast<int>(scale))));
        all += std::abs(x);
        if (y == 0) lost += std::abs(x);
        if (std::isinf(y)) ++overflows;
      }
    }
    result.push_back(100 * lost / all);
    result.push_back(overflows);
  }
  return result;
}

Outcome run(Run& run) {
  const Settings& s = run.settings();
  const std::string& trace = s.word("trace");
  const auto steps = s.integers("step");
  auto scales = s.integers("log2_S");
  std::ranges::sort(scales);
  const double tolerated = s.number("tolerated");
  Outcome outcome;
  outcome.figure = {"E02: what FP16 loses of the sum of magnitudes", "log2 of the loss scale S",
                    "share of the sum of |g| (%)", false, true};
  const auto path = trace_at(trace, outcome);
  if (!path) return outcome;
  run.announce(steps.size());
  for (const std::int64_t step : steps) {
    const std::string key = "step " + std::to_string(step);
    const auto& x =
        run.point(key, [&] { return losses(gradients_of(run, *path, step, "grad_out"), scales); });
    Curve curve{key};
    double rises = 0, falls = 0, smallest = NAN, largest = NAN;
    for (std::size_t i = 0; i < scales.size(); ++i) {
      const double scale = static_cast<double>(scales[i]);
      curve.add(scale, x[2 * i]);
      if (i != 0 && x[2 * i] > x[2 * i - 2]) ++rises;
      if (i != 0 && x[2 * i + 1] < x[2 * i - 1]) ++falls;
      if (std::isnan(smallest) && x[2 * i] <= tolerated) smallest = scale;
      if (x[2 * i + 1] == 0) largest = scale;
    }
    outcome.figure.curves.push_back(curve);
    const std::string monotone = "rounding is monotone";
    outcome.findings.insert(
        outcome.findings.end(),
        {{key + ": smallest log2 S that loses at most the tolerated share", "", smallest,
          Reference{.value = 3,
                    .source = "arXiv 1710.03740: S = 8 was enough for SSD",
                    .certainty = Certainty::read,
                    .undecidable = "another network, whose trace was not published"}},
         {key + ": largest log2 S at which nothing overflows", "", largest},
         {key + ": scales at which more is lost than at the next smaller one", "", rises,
          Reference{.source = monotone}},
         {key + ": scales at which less overflows than at the next smaller one", "", falls,
          Reference{.source = monotone}}});
  }
  return outcome;
}

}  // namespace
}  // namespace e02

Experiment sufficient_loss_scale() {
  using namespace e02;
  std::vector<Parameter> parameters = trace_parameters();
  parameters.push_back({"log2_S", "logarithms of the loss scales", "0:32:1", "0:32:4",
                        Parameter::Kind::integer, true, -100, 100});
  parameters.push_back({"tolerated", "share of the sum of |g| that may be lost, in percent", "0.01",
                        "", Parameter::Kind::number, false, 0, 100});
  return {
      .name = "E02",
      .slug = "sufficient_loss_scale",
      .question = "Which loss scale is enough for FP16 gradients?",
      .method =
          "As E01, but what is lost counts by its magnitude: "
          "the smallest scale that keeps all but a tolerated share, and the largest at which nothing overflows.",
      .expected =
          "SSD diverges at S = 1 and matches FP32 at S = 8, bigLSTM needed S = 128 (arXiv 1710.03740, read through quotations). "
          "Less is lost and more overflows the larger the scale.",
      .parameters = parameters,
      .run = run,
  };
}

}  // namespace guardbit::experiments
