#include <array>
#include <cmath>

#include "emulator/gemm/scalar.hpp"
#include "experiments/harness/repeats.hpp"
#include "experiments/harness/run.hpp"
#include "experiments/suite/recorded_traces.hpp"
#include "experiments/suite/suite.hpp"

namespace guardbit::experiments {

namespace e01 {
namespace {

struct Recorded {
  /// log2
  std::int64_t step, scale;
  std::string_view percent;
};
constexpr std::array recorded = {
    Recorded{200, 0, "37.56"},  Recorded{200, 8, "11.64"}, Recorded{200, 16, "1.49"},
    Recorded{200, 24, "0.03"},  Recorded{599, 0, "87.73"}, Recorded{599, 8, "64.66"},
    Recorded{599, 16, "27.59"}, Recorded{599, 24, "5.20"},
};

Outcome run(Run& run) {
  const Settings& s = run.settings();
  const std::string& trace = s.word("trace");
  const auto steps = s.integers("step"), scales = s.integers("log2_S");
  Outcome outcome;
  outcome.figure = {"E01: gradients of layer outputs that FP16 stores as zero",
                    "log2 of the loss scale S", "share of those other than zero (%)"};
  const auto path = trace_at(trace, outcome);
  if (!path) return outcome;
  run.announce(steps.size());
  for (const std::int64_t step : steps) {
    const std::string key = "step " + std::to_string(step);
    const auto& lost = run.point(key, [&] {
      const StepGradients gradients = gradients_of(run, *path, step, "grad_out");
      std::vector<double> percents;
      for (const std::int64_t scale : scales) {
        double zeros = 0;
        for (const auto& tensor : gradients.tensors) {
          for (const double x : tensor) {
            // The product as PyTorch computes it: in FP32.
            const double scaled =
                emulator::scalar::rounded(formats::fp32, std::ldexp(x, static_cast<int>(scale)));
            if (x != 0 && emulator::scalar::rounded(formats::fp16, scaled) == 0) ++zeros;
          }
        }
        percents.push_back(100 * zeros / gradients.nonzero());
      }
      return percents;
    });
    Curve curve{key}, known{key + ", recorded", {}, {}, Look::points, true};
    for (std::size_t i = 0; i < scales.size(); ++i) {
      curve.add(static_cast<double>(scales[i]), lost[i]);
      Finding finding{key + ", S=2^" + std::to_string(scales[i]) + ": stored as zero", "%",
                      lost[i]};
      for (const Recorded& r : recorded) {
        if (trace != own_trace || r.step != step || r.scale != scales[i]) continue;
        finding.reference = Reference{.value = number_of(r.percent),
                                      .tolerance = half_digit(r.percent),
                                      .tolerance_reason = "half a unit of the recorded last digit",
                                      .source = std::string(own_trace_source),
                                      .certainty = Certainty::measured};
        known.add(static_cast<double>(r.scale), number_of(r.percent));
      }
      outcome.findings.push_back(finding);
    }
    outcome.figure.curves.push_back(curve);
    if (!known.x.empty()) outcome.figure.curves.push_back(known);
  }
  outcome.notes.emplace_back(
      "Micikevicius et al. (arXiv 1710.03740, Fig. 3, read through quotations) report for SSD: "
      "67 % are zero in FP32 already, FP16 makes zero of another 31 %, 5.3 % survive (which adds up to 103 %). "
      "Their trace was not published: not decided here.");
  return outcome;
}

}  // namespace
}  // namespace e01

Experiment fp16_underflow() {
  using namespace e01;
  std::vector<Parameter> parameters = trace_parameters();
  parameters.push_back({"log2_S", "logarithms of the loss scales", "0:24:2", "0:24:8",
                        Parameter::Kind::integer, true, -100, 100});
  return {
      .name = "E01",
      .slug = "fp16_underflow",
      .question = "How much of a gradient does FP16 lose, and what does a loss scale save?",
      .method =
          "Each recorded gradient is multiplied with the loss scale in FP32 and rounded to FP16; those other than zero that become zero are counted.",
      .expected =
          "Own trace: 37.56, 11.64, 1.49, 0.03 % at step 200 and 87.73, 64.66, 27.59, "
          "5.20 % at step 599 for S = 1, 2^8, 2^16, 2^24 (measured). SSD: see the notes.",
      .parameters = parameters,
      .run = run,
  };
}

}  // namespace guardbit::experiments
