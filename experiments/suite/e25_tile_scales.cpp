#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "emulator/gemm/scalar.hpp"
#include "experiments/harness/repeats.hpp"
#include "experiments/harness/run.hpp"
#include "experiments/suite/mx_scales.hpp"
#include "experiments/suite/recorded_traces.hpp"
#include "experiments/suite/suite.hpp"

namespace guardbit::experiments {

namespace e25 {
namespace {

namespace scalar = emulator::scalar;
using formats::Format;

/// How numbers get the scale they are quantised with.
struct Recipe {
  std::string_view name;
  Format element;
  /// neighbours with one scale; 0: the whole tensor
  std::size_t tile;
  /// MX: powers of two, rounded up
  bool powers;
  /// amax is raised to the tile floor
  bool floor;
};
constexpr std::array recipes = {
    Recipe{"E4M3, one scale", formats::e4m3, 0, false, false},
    Recipe{"E5M2, one scale", formats::e5m2, 0, false, false},
    Recipe{"MXFP8 E4M3, rceil", formats::e4m3, 32, true, false},
    Recipe{"E4M3, 1x128", formats::e4m3, 128, false, false},
    Recipe{"E4M3, 1x128, floor", formats::e4m3, 128, false, true},
};

struct Recorded {
  std::int64_t step;
  std::array<std::string_view, recipes.size()> percent;
};
constexpr std::array recorded = {
    Recorded{200, {"20.75", "0.18", "0.16", "0.35", "14.69"}},
    Recorded{599, {"61.15", "9.15", "0.20", "0.33", "68.80"}},
};
constexpr double recorded_floor = 1e-4;

/// x times the scale's reciprocal in FP32, then rounded.
double quantised(const Recipe& recipe, double x, double scale) {
  const double inverse = scalar::rounded(formats::fp32, 1 / scale);
  return scalar::rounded(recipe.element, scalar::multiply(formats::fp32, x, inverse));
}

double scale_of(const Recipe& recipe, std::span<const double> tile, double floor) {
  double amax = 0;
  for (const double x : tile) amax = std::max(amax, std::abs(x));
  if (recipe.floor) amax = std::max(amax, scalar::rounded(formats::fp32, floor));
  if (amax == 0) return 1;
  if (recipe.powers) {
    return scalar::decoded(formats::e8m0,
                           mx_scale(formats::mxfp8_e4m3, static_cast<float>(amax), "rceil"));
  }
  const double largest = scalar::decoded(recipe.element, formats::max_finite_code(recipe.element));
  return scalar::rounded(formats::fp32, amax / largest);
}

double lost_percent(const Recipe& recipe, const StepGradients& gradients, double floor) {
  double zeros = 0;
  for (const auto& tensor : gradients.tensors) {
    const std::size_t tile = recipe.tile == 0 ? tensor.size() : recipe.tile;
    for (std::size_t begin = 0; begin < tensor.size(); begin += tile) {
      const auto part = std::span(tensor).subspan(begin, std::min(tile, tensor.size() - begin));
      const double scale = scale_of(recipe, part, floor);
      for (const double x : part)
        if (x != 0 && quantised(recipe, x, scale) == 0) ++zeros;
    }
  }
  return 100 * zeros / gradients.nonzero();
}

Outcome run(Run& run) {
  const Settings& s = run.settings();
  const std::string& trace = s.word("trace");
  const auto steps = s.integers("step");
  const double floor = s.number("floor");
  Outcome outcome;
  outcome.figure = {
      "E25: gradients that E4M3 stores as zero, amax of tiles of 128 raised to a floor", "floor",
      "stored as zero (%)", true};
  const auto path = trace_at(trace, outcome);
  if (!path) return outcome;
  run.announce(2 * steps.size());
  for (const std::int64_t step : steps) {
    const std::string key = "step " + std::to_string(step);
    const auto& lost = run.point(key, [&] {
      const StepGradients gradients = gradients_of(run, *path, step, "grad_out");
      std::vector<double> values;
      values.reserve(recipes.size());
      for (const Recipe& recipe : recipes) values.push_back(lost_percent(recipe, gradients, floor));
      return values;
    });
    const auto drawn = s.numbers("drawn");
    const auto& shares = run.point(key + ", floors", [&] {
      const StepGradients gradients = gradients_of(run, *path, step, "grad_out");
      std::vector<double> values;
      values.reserve(drawn.size());
      for (const double x : drawn) values.push_back(lost_percent(recipes.back(), gradients, x));
      return values;
    });
    outcome.figure.curves.push_back({key, drawn, shares});
    for (std::size_t i = 0; i < recipes.size(); ++i) {
      Finding finding{key + ", " + std::string(recipes[i].name) + ": stored as zero", "%", lost[i]};
      for (const Recorded& r : recorded) {
        if (trace != own_trace || r.step != step || (recipes[i].floor && floor != recorded_floor))
          continue;
        finding.reference = Reference{.value = number_of(r.percent[i]),
                                      .tolerance = half_digit(r.percent[i]),
                                      .tolerance_reason = "half a unit of the recorded last digit",
                                      .source = std::string(own_trace_source),
                                      .certainty = Certainty::measured};
      }
      outcome.findings.push_back(finding);
    }
  }
  outcome.notes.emplace_back(
      "A scale of its own for every 128 neighbours keeps nearly everything; "
      "a floor under amax takes that away from exactly the tiles that need it, and loses more than one scale for the whole tensor does.");
  return outcome;
}

}  // namespace
}  // namespace e25

Experiment tile_scales() {
  using namespace e25;
  std::vector<Parameter> parameters = trace_parameters();
  parameters.push_back({"floor", "least amax of a tile (DeepGEMM: 1e-4)", "0.0001", "",
                        Parameter::Kind::number, false, 1e-30, 1e30});
  parameters.push_back({"drawn", "floors in the plot", "1e-10:0.01:x10", "1e-08,0.0001",
                        Parameter::Kind::number, true, 1e-30, 1e30});
  return {
      .name = "E25",
      .slug = "tile_scales",
      .question = "What does a lower bound on the amax of tiles cost a quiet gradient?",
      .method =
          "Recorded gradients are quantised to FP8 with a scale for each tensor, for each 32 (MX) and for each 128 neighbours, "
          "the last also with amax raised to the floor, as DeepGEMM's helper does; "
          "numbers other than zero that become zero are counted.",
      .expected =
          "Step 599 of the own trace: 0.33 % with scales of 128, 68.80 % with the floor of 1e-4 (measured).",
      .parameters = parameters,
      .run = run,
  };
}

}  // namespace guardbit::experiments
