#include <array>
#include <cmath>

#include "emulator/gemm/scalar.hpp"
#include "experiments/harness/run.hpp"
#include "experiments/suite/recorded_traces.hpp"
#include "experiments/suite/suite.hpp"

namespace guardbit::experiments {

namespace e03 {
namespace {

struct Recorded {
  /// log2
  std::int64_t step, scale;
  double zeros;
};
// The sums of sample_casts in tests/golden/traces/transformer_counts.json.
constexpr std::array recorded = {
    Recorded{40, 0, 31},   Recorded{40, 4, 2},   Recorded{40, 8, 1},   Recorded{40, 12, 0},
    Recorded{1199, 0, 61}, Recorded{1199, 4, 4}, Recorded{1199, 8, 0}, Recorded{1199, 12, 0},
};

/// Numbers other than zero; of those the exponents below -24; then what each scale makes zero.
std::vector<double> counts_of(const StepGradients& gradients,
                              const std::vector<std::int64_t>& scales) {
  std::vector<double> counts = {gradients.nonzero(), 0};
  counts.resize(2 + scales.size());
  for (const auto& tensor : gradients.tensors) {
    for (const double x : tensor) {
      if (x == 0) continue;
      if (std::abs(x) < 0x1p-24) ++counts[1];
      for (std::size_t i = 0; i < scales.size(); ++i) {
        // The product as PyTorch computes it: in FP32.
        const double scaled =
            emulator::scalar::rounded(formats::fp32, std::ldexp(x, static_cast<int>(scales[i])));
        if (emulator::scalar::rounded(formats::fp16, scaled) == 0) ++counts[2 + i];
      }
    }
  }
  return counts;
}

Outcome run(Run& run) {
  const Settings& s = run.settings();
  const std::string& trace = s.word("trace");
  const auto steps = s.integers("step"), scales = s.integers("log2_S");
  Outcome outcome;
  outcome.figure = {"E03: gradients of weights that FP16 stores as zero",
                    "log2 of the loss scale S", "share of those other than zero (%)"};
  const auto path = trace_at(trace, outcome);
  if (!path) return outcome;
  run.announce(steps.size());
  for (const std::int64_t step : steps) {
    const std::string key = "step " + std::to_string(step);
    const auto& counts =
        run.point(key, [&] { return counts_of(gradients_of(run, *path, step, "wgrad"), scales); });
    outcome.findings.push_back(
        {key + ": exponents below -24", "%", 100 * counts[1] / counts[0],
         Reference{.value = 5,
                   .source = "arXiv 1710.03740, Fig. 2b, a Mandarin speech model: about 5 %",
                   .certainty = Certainty::read,
                   .undecidable = "another network, whose trace was not published"}});
    Curve curve{key};
    for (std::size_t i = 0; i < scales.size(); ++i) {
      curve.add(static_cast<double>(scales[i]), 100 * counts[2 + i] / counts[0]);
      std::string what = key;
      what += ", S=2^" + std::to_string(scales[i]) + ": stored as zero";
      Finding finding{what, "numbers", counts[2 + i]};
      for (const Recorded& r : recorded) {
        if (trace == transformer_trace && r.step == step && r.scale == scales[i])
          finding.reference = Reference{.value = r.zeros,
                                        .source = "torch 2.11 casts of the same numbers on an H200",
                                        .certainty = Certainty::measured};
      }
      outcome.findings.push_back(finding);
      // Of a scale of 1, half of the last binade below 2^-24 still rounds up to 2^-24.
      if (scales[i] == 0)
        outcome.findings.push_back({key + ": zeros at S=1 over exponents below -24", "",
                                    counts[1] == 0 ? 0 : counts[2 + i] / counts[1],
                                    Reference{.value = 1,
                                              .source = "what rounds to zero is at most 2^-25",
                                              .relation = Reference::Relation::at_most}});
    }
    outcome.figure.curves.push_back(curve);
  }
  outcome.notes.emplace_back(
      "Each tensor of this trace is an evenly spaced sample of 2560 numbers at most (tokens' "
      "and positions' gradients are mostly exact zeros, which are not counted).");
  return outcome;
}

}  // namespace
}  // namespace e03

Experiment weight_gradients() {
  using namespace e03;
  using Kind = Parameter::Kind;
  return {
      .name = "E03",
      .slug = "weight_gradients",
      .question = "How many gradients of weights lie below what FP16 holds?",
      .method =
          "Recorded gradients of weights: "
          "how many have an exponent below -24, FP16's smallest number, "
          "and how many become zero when multiplied with a loss scale in FP32 and rounded to FP16.",
      .expected =
          "A transformer's gradients (H200): the zeros that torch's casts made of the same numbers (measured). "
          "About 5 % of exponents below -24 in another network (arXiv 1710.03740, Fig. 2b, read).",
      .parameters = {{"trace", "file of recorded gradients", transformer_trace, "", Kind::path},
                     {"step", "of the training", "40,1199", "", Kind::integer, true, 0, 1e9},
                     {"log2_S", "logarithms of the loss scales", "0:20:4", "", Kind::integer, true,
                      -100, 100}},
      .run = run,
  };
}

}  // namespace guardbit::experiments
