#include <array>
#include <cmath>

#include "emulator/gemm_scalar.hpp"
#include "experiments/run.hpp"
#include "experiments/suite/suite.hpp"

namespace guardbit::experiments {

namespace {

namespace scalar = emulator::scalar;

/// x * (1 / s) in FP32, as PyTorch's kernels compute it.
double scaled(double x, double scale) {
  const double inverse = scalar::rounded(formats::fp32, 1 / scale);
  return scalar::multiply(formats::fp32, scalar::rounded(formats::fp32, x), inverse);
}

/// Does the gradient pass? PyTorch: the rounded number plus the zero point is in range.
bool passes_pytorch(double x, double scale, double zero, double low, double high) {
  const double r = std::nearbyint(scaled(x, scale)) + zero;
  return r >= low && r <= high;
}

/// ModelOpt: the number itself is in range.
bool passes_modelopt(double x, double scale, double high) { return std::abs(x) <= high * scale; }

struct Recorded {
  double x;
  bool passes;
};
constexpr std::array recorded = {Recorded{12.74, true}, Recorded{12.75, false},
                                 Recorded{-12.85, true}};

Outcome run(Run& run) {
  const Settings& s = run.settings();
  const double scale = scalar::rounded(formats::fp32, s.number("scale"));
  const auto bits = static_cast<int>(s.integer("bits"));
  const double low = -std::ldexp(1.0, bits - 1), high = -low - 1;
  const bool usual = s.number("scale") == 0.1 && bits == 8;
  const auto probes = s.numbers("x");
  run.announce(probes.size() + 1);
  Outcome outcome;
  for (std::size_t i = 0; i < probes.size(); ++i) {
    const double x = probes[i];
    const std::string key = "x=" + s.words("x")[i];
    const auto& passes = run.point(key, [&] {
      return std::vector<double>{passes_pytorch(x, scale, 0, low, high) ? 1.0 : 0,
                                 passes_modelopt(x, scale, high) ? 1.0 : 0};
    });
    Finding pytorch{key + ": PyTorch passes the gradient", "", passes[0]};
    for (const Recorded& r : recorded) {
      if (usual && r.x == x)
        pytorch.reference = Reference{.value = r.passes ? 1.0 : 0,
                                      .source = "fake quantisation of torch 2.11",
                                      .certainty = Certainty::measured};
    }
    outcome.findings.insert(outcome.findings.end(),
                            {pytorch, {key + ": ModelOpt passes the gradient", "", passes[1]}});
  }
  // Odd zero points move ties: nearbyint(x / s) + 1 and nearbyint(x / s + 1) differ there.
  const auto& disagree = run.point("zero point", [&] {
    double count = 0;
    for (double k = low; k <= high; ++k) {
      const double x = (k + 0.5) * scale;
      const double apart = std::nearbyint(scaled(x, scale)) + 1;
      const double together = std::nearbyint(scalar::add(formats::fp32, scaled(x, scale), 1));
      if (apart != together) ++count;
    }
    return std::vector<double>{count};
  });
  outcome.findings.push_back({"ties at which rounding before and after an odd zero point differ",
                              "", disagree[0],
                              Reference{.value = 1,
                                        .source = "pytorch issue 49779: CPU and GPU disagreed",
                                        .certainty = Certainty::read,
                                        .relation = Reference::Relation::at_least}});
  outcome.notes.emplace_back(
      "PyTorch tests after rounding, ties to even, so the border lies at 12.75 (127.5 becomes 128) "
      "but -12.85 still passes (-128.5 becomes -128); ModelOpt tests the number itself.");
  return outcome;
}

}  // namespace

Experiment straight_through_borders() {
  using Kind = Parameter::Kind;
  return {
      .name = "E27",
      .slug = "straight_through",
      .question = "Where does a straight-through estimator cut the gradient?",
      .method =
          "Fake quantisation with a scale and a symmetric integer range, in FP32 as the kernels "
          "compute it: PyTorch's test after rounding, ModelOpt's test of |x|, and the zero point "
          "added before or after rounding.",
      .expected =
          "Scale 0.1, int8, PyTorch: 12.74 passes, 12.75 does not, -12.85 passes (measured).",
      .parameters = {{"x", "numbers to try", "12.74,12.75,-12.85,12.7,-12.7,-12.8", "",
                      Kind::number, true, -1e6, 1e6},
                     {"scale", "", "0.1", "", Kind::number, false, 1e-6, 1e6},
                     {"bits", "of the integer", "8", "", Kind::integer, false, 2, 16}},
      .run = run,
  };
}

}  // namespace guardbit::experiments
