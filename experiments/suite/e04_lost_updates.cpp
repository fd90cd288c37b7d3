#include <algorithm>
#include <cmath>

#include "emulator/gemm/scalar.hpp"
#include "experiments/harness/run.hpp"
#include "experiments/suite/lost_updates.hpp"
#include "experiments/suite/suite.hpp"

namespace guardbit::experiments {

namespace e04 {
namespace {

/// An update is lost below half the unit on its side of w, and at half of it where the tie goes to
/// w, whose significand is even.
double predicted(const formats::Format& format, const LostUpdate& x) {
  const bool shorter_unit = x.weight == 1 && x.toward_zero;
  const double half = std::ldexp(1.0, -formats::precision(format) - (shorter_unit ? 1 : 0));
  const auto fraction = std::ldexp(x.weight - 1, format.fraction_bits);
  const bool even = std::fmod(fraction, 2) == 0;
  return even ? half : half - update_grid(format);
}

const std::string mpt = "Micikevicius et al., arXiv 1710.03740, 3.1";

Outcome run(Run& run) {
  Outcome outcome;
  outcome.figure = {"E04: from which ratio on a weight swallows its update",
                    "weight w (between two powers of two)", "smallest w / |update| that is lost"};
  const auto& names = run.settings().words("format");
  run.announce(names.size());
  for (const std::string& name : names) {
    const formats::Format format = formats::require_format(name, "format");
    const auto& largest_lost = run.point(name, [&] {
      std::vector<double> values;
      for (const LostUpdate& x : lost_updates(format)) {
        values.push_back(x.weight);
        values.push_back(x.toward_zero ? 1 : 0);
        values.push_back(x.largest_lost);
      }
      return values;
    });
    double mismatches = 0, least = 1e300, most = 0;
    Curve up{name + ", away from zero"}, down{name + ", toward zero"};
    for (std::size_t i = 0; i < largest_lost.size(); i += 3) {
      const LostUpdate x{largest_lost[i], largest_lost[i + 1] != 0, largest_lost[i + 2]};
      if (x.largest_lost != predicted(format, x)) ++mismatches;
      const double ratio = x.weight / x.largest_lost;
      least = std::min(least, ratio);
      most = std::max(most, ratio);
      (x.toward_zero ? down : up).add(x.weight, ratio);
    }
    outcome.figure.curves.push_back(up);
    outcome.figure.curves.push_back(down);
    outcome.findings.push_back(
        {name + ": thresholds that differ from the rule", "", mismatches,
         Reference{.source = "definition of rounding to nearest, ties to even"}});
    Finding ratio{name + ": smallest w / |update| that is lost", "", least};
    if (name == "fp16")
      ratio.reference = Reference{.value = 2048, .source = mpt, .certainty = Certainty::read};
    outcome.findings.push_back(ratio);
    outcome.findings.push_back(
        {name + ": largest w / |update| at which the update begins to be lost", "", most});
  }
  const auto sum = [](double w, double update) {
    return emulator::scalar::rounded(formats::fp16, w + update);
  };
  const double step = std::ldexp(1.0, -11);
  const std::string own = "own FP16 additions, NumPy and H200";
  outcome.findings.push_back(
      {"fp16: 1 + 2^-10 plus 2^-11 (ratio 2050), moved by", "2^-10",
       (sum(1 + 2 * step, step) - 1 - 2 * step) / (2 * step),
       Reference{.value = 1, .source = own, .certainty = Certainty::measured}});
  outcome.findings.push_back(
      {"fp16: 1 minus 2^-11 (ratio 2048), moved by", "2^-11", (1 - sum(1, -step)) / step,
       Reference{.value = 1, .source = own, .certainty = Certainty::measured}});
  outcome.notes.emplace_back(
      "A ratio of 2048 is where loss becomes possible, not where it is certain: "
      "odd significands move at the tie, and a power of two moves toward zero down to a ratio of 4096. "
      "That training without FP32 master weights lost 80 % of its relative accuracy (same source) needs their network, and is not decided here.");
  return outcome;
}

}  // namespace
}  // namespace e04

Experiment lost_weight_updates() {
  using namespace e04;
  using Kind = Parameter::Kind;
  return {
      .name = "E04",
      .slug = "lost_updates",
      .question = "Which updates does a low-precision weight swallow?",
      .method =
          "For every weight of the format in [1, 2), and both directions, "
          "the largest update that round(w + update) loses is found by bisection and compared with the rule: "
          "below half the unit in the last place on that side, or equal to it with an even significand.",
      .expected =
          "Updates from a ratio |w| / |update| of 2048 on can be lost in FP16 (arXiv 1710.03740, read); "
          "1 + 2^-10 plus 2^-11 and 1 minus 2^-11 move (measured).",
      .parameters = {{"format", "of the weights", "fp16,bf16", "", Kind::word, true, 0, 0,
                      "fp16,bf16,tf32,e5m2,e4m3"}},
      .run = run,
  };
}

}  // namespace guardbit::experiments
