#include <array>
#include <cmath>

#include "experiments/harness/run.hpp"
#include "experiments/quantisation/integer_grid.hpp"
#include "experiments/suite/suite.hpp"

namespace guardbit::experiments {

namespace e27 {
namespace {

struct Recorded {
  double x;
  bool passes;
};
constexpr std::array recorded = {Recorded{12.74, true}, Recorded{12.75, false},
                                 Recorded{-12.85, true}};

/// Two units on either side of the largest integer's number.
Figure figure_of(const IntegerGrid& grid, float amax) {
  Figure figure{.title = "E27: where the gradient passes, around the largest integer",
                .x_label = "x",
                .y_label = "gradient by x (1: it passes)"};
  for (const auto& [name, variant] : {std::pair{"PyTorch", StraightThrough::pytorch},
                                      std::pair{"ModelOpt", StraightThrough::modelopt}}) {
    Curve curve{name, {}, {}, Look::steps};
    for (int i = -20; i <= 20; ++i) {
      const float x = amax + static_cast<float>(i) / 10 * amax / static_cast<float>(grid.high);
      curve.add(static_cast<double>(x), static_cast<double>(gradient_of(variant, grid, x, amax).x));
    }
    figure.curves.push_back(curve);
  }
  return figure;
}

Outcome run(Run& run) {
  const Settings& s = run.settings();
  const auto scale = static_cast<float>(s.number("scale"));
  const auto bits = static_cast<int>(s.integer("bits"));
  const IntegerGrid grid{IntegerArithmetic::pytorch, scale, 0, -(1 << (bits - 1)),
                         (1 << (bits - 1)) - 1};
  const float amax = static_cast<float>(grid.high) * scale;
  const bool usual = s.number("scale") == 0.1 && bits == 8;
  const auto probes = s.numbers("x");
  run.announce(probes.size() + 1);
  Outcome outcome;
  for (std::size_t i = 0; i < probes.size(); ++i) {
    const double x = probes[i];
    const std::string key = "x=" + s.words("x")[i];
    const auto& passes = run.point(key, [&] {
      const auto passed = [&](StraightThrough variant) -> double {
        return gradient_of(variant, grid, static_cast<float>(x), amax).x;
      };
      return std::vector<double>{passed(StraightThrough::pytorch),
                                 passed(StraightThrough::modelopt)};
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
    IntegerGrid shifted = grid;
    shifted.zero = 1;
    for (int k = grid.low; k <= grid.high; ++k) {
      const float x = (static_cast<float>(k) + 0.5F) * scale;
      if (shifted.unclamped(x) != std::nearbyint(shifted.scaled(x) + 1)) ++count;
    }
    return std::vector<double>{count};
  });
  outcome.findings.push_back({"ties at which rounding before and after an odd zero point differ",
                              "", disagree[0],
                              Reference{.value = 1,
                                        .source = "pytorch issue 49779: CPU and GPU disagreed",
                                        .certainty = Certainty::read,
                                        .relation = Reference::Relation::at_least}});
  outcome.figure = figure_of(grid, amax);
  outcome.notes.emplace_back(
      "PyTorch tests after rounding, ties to even, "
      "so the border lies at 12.75 (127.5 becomes 128) but -12.85 still passes (-128.5 becomes -128); "
      "ModelOpt tests the number itself.");
  return outcome;
}

}  // namespace
}  // namespace e27

Experiment straight_through_borders() {
  using namespace e27;
  using Kind = Parameter::Kind;
  return {
      .name = "E27",
      .slug = "straight_through",
      .question = "Where does a straight-through estimator cut the gradient?",
      .method =
          "Fake quantisation with a scale and a symmetric integer range, in FP32 as the kernels compute it: "
          "PyTorch's test after rounding, ModelOpt's test of |x|, and the zero point added before or after rounding.",
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
