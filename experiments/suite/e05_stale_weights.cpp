#include <algorithm>
#include <bit>
#include <cmath>

#include "emulator/gemm/scalar.hpp"
#include "experiments/harness/run.hpp"
#include "experiments/suite/lost_updates.hpp"
#include "experiments/suite/suite.hpp"

namespace guardbit::experiments {

namespace e05 {
namespace {

using emulator::scalar::rounded;

struct Walk {
  formats::Format format;
  double weight, update;
  std::int64_t steps;
};

double to_nearest(const Walk& x) {
  double w = x.weight;
  for (std::int64_t i = 0; i < x.steps; ++i) w = rounded(x.format, w + x.update);
  return w;
}

/// Kahan's compensated sum, every operation rounded to the format.
double compensated(const Walk& x) {
  double w = x.weight, lost = 0;
  for (std::int64_t i = 0; i < x.steps; ++i) {
    const double y = rounded(x.format, x.update - lost);
    const double t = rounded(x.format, w + y);
    lost = rounded(x.format, rounded(x.format, t - w) - y);
    w = t;
  }
  return w;
}

/// Where one walk ends; adds to `variance` that of each rounding on its way.
double stochastic(const Walk& x, const Draws& draws, std::int64_t trial, double& variance) {
  double w = x.weight;
  for (std::int64_t i = 0; i < x.steps; ++i) {
    const double sum = w + x.update;
    variance += stochastic_variance(x.format, sum);
    const auto value = formats::decode(formats::fp64, std::bit_cast<std::uint64_t>(sum));
    const auto random = draws.bits(static_cast<std::uint64_t>(trial * x.steps + i));
    w = emulator::scalar::decoded(
        x.format, formats::encode(x.format, value, formats::Rounding::stochastic, {}, random));
  }
  return w;
}

/// The first walk of each kind, at fifty of its steps.
Figure figure_of(const Walk& walk, const Draws& draws) {
  constexpr std::int64_t places = 50;
  Curve nearest{"to nearest even"}, kahan{"compensated (Kahan)"}, random{"stochastic, one walk"},
      exact{"exact"};
  for (std::int64_t i = 0; i <= places; ++i) {
    Walk part = walk;
    part.steps = walk.steps * i / places;
    const auto step = static_cast<double>(part.steps);
    double variance = 0;
    nearest.add(step, to_nearest(part));
    kahan.add(step, compensated(part));
    random.add(step, stochastic(part, draws, 0, variance));
    exact.add(step, walk.weight + step * walk.update);
  }
  return {.title = "E05: a BF16 weight under equal updates",
          .x_label = "step",
          .y_label = "weight",
          .curves = {nearest, kahan, random, exact}};
}

Outcome run(Run& run) {
  const Settings& s = run.settings();
  // The update is one FP32 number, so FP64 holds every sum exactly.
  const Walk walk{formats::bf16, s.number("weight"),
                  static_cast<double>(static_cast<float>(s.number("update"))), s.integer("steps")};
  const auto trials = s.integer("trials");
  run.announce(3);
  const auto& single = run.point("deterministic", [&] {
    return std::vector<double>{to_nearest(walk), compensated(walk)};
  });
  // Roundings do not correlate, so the variance of the end is the mean of what walks add up.
  const auto& walks = run.point("stochastic", [&] {
    double sum = 0, variance = 0;
    for (std::int64_t t = 0; t < trials; ++t) {
      run.check_stop();
      sum += stochastic(walk, run.draws("rounding"), t, variance);
    }
    const auto n = static_cast<double>(trials);
    return std::vector<double>{sum / n, std::sqrt(variance / n)};
  });
  const auto& thresholds = run.point("thresholds", [&] {
    double least = 1e300, most = 0;
    for (const LostUpdate& x : lost_updates(walk.format)) {
      least = std::min(least, x.largest_lost / x.weight);
      most = std::max(most, x.largest_lost / x.weight);
    }
    return std::vector<double>{least, most};
  });
  const double deviation = walks[1], error = deviation / std::sqrt(static_cast<double>(trials));
  const double end = walk.weight + static_cast<double>(walk.steps) * walk.update;
  const bool usual = s == usual_settings(stale_weights().parameters, false) ||
                     s == usual_settings(stale_weights().parameters, true);

  Outcome outcome;
  outcome.findings = {
      {"to nearest even: final weight", "", single[0]},
      {"compensated (Kahan): final weight", "", single[1]},
      {"stochastic: mean final weight", "", walks[0],
       Reference{
           .value = end,
           .tolerance = 4 * error,
           .tolerance_reason =
               "four standard errors of the mean of the trials, from the variance of each rounding",
           .source = "each stochastic rounding keeps its mean",
           .certainty = Certainty::derived}},
      {"smallest |update| / |w| at which loss ends, over all w", "2^-9",
       std::ldexp(thresholds[0], 9)},
      {"largest |update| / |w| that is lost, over all w", "2^-9", std::ldexp(thresholds[1], 9)}};
  const std::string half_units = "half a unit in the last place of BF16 over w in [1, 2)";
  if (usual) {
    outcome.findings[0].reference =
        Reference{.value = 1, .source = "own BF16 additions", .certainty = Certainty::measured};
    outcome.findings[1].reference =
        Reference{.value = end,
                  .tolerance = std::ldexp(1.0, -7),
                  .tolerance_reason = "one unit in the last place of the final weight",
                  .source = "Kahan summation",
                  .certainty = Certainty::recalled};
  }
  outcome.findings[3].reference = Reference{.value = 1, .source = half_units};
  outcome.findings[4].reference = Reference{.value = 2, .source = half_units};
  outcome.figure = figure_of(walk, run.draws("rounding"));
  outcome.notes.emplace_back(
      "Standard deviation of one stochastic walk: " + std::to_string(deviation) + ".");
  return outcome;
}

}  // namespace
}  // namespace e05

Experiment stale_weights() {
  using namespace e05;
  using Kind = Parameter::Kind;
  return {
      .name = "E05",
      .slug = "stale_weights",
      .question = "What becomes of a BF16 weight that gets a thousand small updates?",
      .method =
          "A BF16 weight is updated step by step: "
          "rounded to nearest even, stochastically (32 random bits), or with Kahan's compensation in a second BF16 number.",
      .expected =
          "1 + 1000 * 0.001: nearest even stays at 1 (measured); "
          "stochastic rounding reaches 2 in the mean (follows from its definition), Kahan about 2 (recalled); "
          "an update is lost from |update| / |w| between 2^-9 and 2^-8 down.",
      .parameters = {{"weight", "before the first step", "1", "", Kind::number, false, 1e-3, 1e3},
                     {"update", "of each step", "0.001", "", Kind::number, false, 1e-6, 1e3},
                     {"steps", "", "1000", "", Kind::integer, false, 1, 100000},
                     {"trials", "of stochastic rounding", "4000", "200", Kind::integer, false, 2,
                      1000000}},
      .run = run,
  };
}

}  // namespace guardbit::experiments
