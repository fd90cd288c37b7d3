#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "emulator/gemm/scalar.hpp"
#include "experiments/harness/run.hpp"
#include "experiments/suite/lost_updates.hpp"
#include "experiments/suite/suite.hpp"

namespace guardbit::experiments {

namespace e38 {
namespace {

using emulator::scalar::rounded;
using formats::Format;

/// How a weight of few bits takes an update computed in FP32.
enum class Keeping : std::uint8_t { nearest, stochastic, compensated, master };
constexpr std::array keepings = {
    std::pair{std::string_view("to nearest"), Keeping::nearest},
    std::pair{std::string_view("stochastic"), Keeping::stochastic},
    std::pair{std::string_view("compensated (Kahan)"), Keeping::compensated},
    std::pair{std::string_view("FP32 master"), Keeping::master}};

double stochastically(const Format& f, double x, formats::RandomBits random) {
  const auto value = formats::decode(formats::fp64, std::bit_cast<std::uint64_t>(x));
  return emulator::scalar::decoded(f, formats::encode(f, value, formats::Rounding::stochastic,
                                                      formats::overflow_saturate, random));
}

/// A weight, what its compensation keeps of earlier updates, and its FP32 master.
struct Weight {
  double value = 0, rest = 0;
  float master = 0;

  void add(float update, Keeping keeping, const Format& f, formats::RandomBits random) {
    switch (keeping) {
      case Keeping::nearest: value = rounded(f, value + update); break;
      case Keeping::stochastic: value = stochastically(f, value + update, random); break;
      case Keeping::compensated: {
        const double wanted = update + rest;
        const double next = rounded(f, value + wanted);
        rest = rounded(f, wanted - (next - value));
        value = next;
        break;
      }
      case Keeping::master:
        master += update;
        value = rounded(f, master);
        break;
    }
  }
};

/// Of the numbers of the format in [1, 2): how many v keep their value when beta * v is rounded,
/// and how many should by comparing what is taken away with half the unit below v.
std::vector<double> stuck_moments(const Format& f, double beta) {
  double kept = 0, should = 0;
  const double unit = std::ldexp(1.0, -f.fraction_bits);
  const std::int64_t count = std::int64_t{1} << f.fraction_bits;
  for (std::int64_t i = 0; i < count; ++i) {
    const double v = 1 + unit * static_cast<double>(i);
    const double next = beta * v;
    if (rounded(f, next) == v) ++kept;
    const double lost = v - next, half = i == 0 ? unit / 4 : unit / 2;
    if (lost < half || (lost == half && i % 2 == 0)) ++should;
  }
  return {kept, should};
}

struct Decay {
  Format format;
  /// learning rate times weight decay
  double step;
  std::int64_t steps;
};

/// AdamW's w -= lr * wd * w from 1 on, without any gradient. Adds to `variance` what stochastic
/// roundings leave of theirs in the end: each later step shrinks it as it does the weight.
double decayed(const Decay& x, Keeping keeping, const Draws& draws, std::int64_t trial,
               double& variance) {
  Weight w{1, 0, 1};
  double spread = 0;
  for (std::int64_t i = 0; i < x.steps; ++i) {
    const double from = keeping == Keeping::master ? w.master : w.value;
    const float update = -static_cast<float>(x.step * from);
    if (keeping == Keeping::stochastic)
      spread = spread * (1 - x.step) * (1 - x.step) +
               stochastic_variance(x.format, w.value + static_cast<double>(update));
    w.add(update, keeping, x.format, draws.bits(static_cast<std::uint64_t>(trial * x.steps + i)));
  }
  variance += spread;
  return w.value;
}

/// A least-squares problem whose gradient is exact (FP64), so that only the updates differ.
class Regression {
 public:
  static constexpr std::size_t weights = 24, samples = 96;

  explicit Regression(const Draws& draws) {
    for (std::size_t i = 0; i < inputs_.size(); ++i)
      inputs_[i] = draws.draw(Distribution::normal, i);
    for (std::size_t s = 0; s < samples; ++s) {
      for (std::size_t j = 0; j < weights; ++j)
        targets_[s] +=
            inputs_[s * weights + j] * draws.draw(Distribution::normal, inputs_.size() + j);
    }
  }

  /// Half the mean square of what is left, and its gradient.
  double loss(const std::vector<Weight>& w, std::vector<double>& gradient) const {
    gradient.assign(weights, 0);
    double sum = 0;
    for (std::size_t s = 0; s < samples; ++s) {
      double left = -targets_[s];
      for (std::size_t j = 0; j < weights; ++j) left += inputs_[s * weights + j] * w[j].value;
      sum += left * left / 2;
      for (std::size_t j = 0; j < weights; ++j)
        gradient[j] += inputs_[s * weights + j] * left / static_cast<double>(samples);
    }
    return sum / static_cast<double>(samples);
  }

 private:
  std::array<double, weights * samples> inputs_{};
  std::array<double, samples> targets_{};
};

struct Recipe {
  /// sgd, momentum, adam, adamw
  std::string optimizer;
  Format weights, states;
  Keeping keeping;
  /// of Adam
  double beta2;
};

/// The loss after each step. Moments are computed in FP32 and stored in their format.
std::vector<double> trained(const Recipe& recipe, const Regression& problem, std::int64_t steps,
                            const Draws& draws) {
  constexpr float beta_1 = 0.9F, epsilon = 1e-8F;
  const auto beta_2 = static_cast<float>(recipe.beta2);
  const bool adam = recipe.optimizer == "adam" || recipe.optimizer == "adamw";
  const float rate = adam ? 0.02F : recipe.optimizer == "sgd" ? 0.05F : 0.005F;
  const float decay = recipe.optimizer == "adamw" ? 0.01F : 0;
  std::vector<Weight> w(Regression::weights);
  std::vector<double> gradient, losses, first(w.size()), second(w.size());
  float power_1 = 1, power_2 = 1;
  for (std::int64_t t = 0; t < steps; ++t) {
    losses.push_back(problem.loss(w, gradient));
    power_1 *= beta_1;
    power_2 *= beta_2;
    for (std::size_t j = 0; j < w.size(); ++j) {
      const auto g = static_cast<float>(gradient[j]);
      float update = -rate * g;
      if (recipe.optimizer == "momentum") {
        first[j] = rounded(recipe.states, beta_1 * static_cast<float>(first[j]) + g);
        update = -rate * static_cast<float>(first[j]);
      } else if (adam) {
        const float m = beta_1 * static_cast<float>(first[j]) + (1 - beta_1) * g;
        const float v = beta_2 * static_cast<float>(second[j]) + (1 - beta_2) * g * g;
        first[j] = rounded(recipe.states, m);
        second[j] = rounded(recipe.states, v);
        const float mean = static_cast<float>(first[j]) / (1 - power_1);
        const float scale = std::sqrt(static_cast<float>(second[j]) / (1 - power_2)) + epsilon;
        const double from = recipe.keeping == Keeping::master ? w[j].master : w[j].value;
        update = -rate * (mean / scale + decay * static_cast<float>(from));
      }
      w[j].add(update, recipe.keeping, recipe.weights,
               draws.bits(static_cast<std::uint64_t>(t) * w.size() + j));
    }
  }
  losses.push_back(problem.loss(w, gradient));
  return losses;
}

void add_moments(Run& run, Outcome& outcome) {
  const double beta = run.settings().number("beta2");
  for (const std::string& name : run.settings().words("state")) {
    const Format f = formats::require_format(name, "state");
    if (f == formats::fp32) continue;  // 2^23 numbers, of which none is stuck at any beta in use
    const auto& found = run.point("moment " + name, [&] { return stuck_moments(f, beta); });
    outcome.findings.push_back(
        {"Adam's second moment in " + name + ": numbers in [1, 2) that never decay",
         "of " + std::to_string(std::int64_t{1} << f.fraction_bits), found[0],
         Reference{.value = found[1],
                   .source = "v (1 - beta2) against half the unit below v, ties to even"}});
  }
}

void add_decay(Run& run, Outcome& outcome) {
  const Settings& s = run.settings();
  const auto trials = s.integer("trials");
  for (const std::string& name : s.words("weight")) {
    const Decay decay{formats::require_format(name, "weight"), s.number("decay"),
                      s.integer("steps")};
    const double unit = std::ldexp(1.0, -decay.format.fraction_bits);
    const double end = std::pow(1 - decay.step, static_cast<double>(decay.steps));
    for (const auto& [word, keeping] : keepings) {
      const std::string key = "weight decay alone, " + name + " " + std::string(word);
      const bool random = keeping == Keeping::stochastic;
      const auto& ends = run.point(key, [&, way = keeping] {
        const std::int64_t walks = random ? trials : 1;
        double sum = 0, variance = 0;
        for (std::int64_t t = 0; t < walks; ++t) {
          run.check_stop();
          sum += decayed(decay, way, run.draws("decay " + name), t, variance);
        }
        const auto n = static_cast<double>(walks);
        return std::vector<double>{sum / n, std::sqrt(variance) / n};
      });
      Reference expected{.value = end,
                         .tolerance = unit,
                         .tolerance_reason = "one unit in the last place below 2",
                         .source = "(1 - step)^steps, kept in two numbers",
                         .certainty = Certainty::recalled};
      if (random) {
        expected.tolerance = 4 * ends[1];
        expected.tolerance_reason =
            "four standard errors of the mean of the trials, from the variance of each rounding";
        expected.source = "(1 - step)^steps: stochastic rounding keeps the mean";
        expected.certainty = Certainty::derived;
      } else if (keeping == Keeping::master) {
        // Below 1 a unit is half as large; each step of the master loses half of FP32's at most.
        expected.tolerance = unit / 4 + static_cast<double>(decay.steps) * std::ldexp(1.0, -24);
        expected.tolerance_reason = "half a unit of the weight, and of FP32 at each step";
        expected.source = "(1 - step)^steps";
        expected.certainty = Certainty::derived;
      }
      Finding finding{key + ": end", "", ends[0], expected};
      if (keeping == Keeping::nearest) {
        finding.reference.reset();
        if (decay.step < unit / 4)
          finding.reference = Reference{.value = 1, .source = "step below half the unit below 1"};
      }
      outcome.findings.push_back(finding);
    }
  }
}

void add_training(Run& run, Outcome& outcome) {
  const Settings& s = run.settings();
  const Regression problem(run.draws("data"));
  const auto train = [&](const Recipe& recipe, const std::string& key) {
    const auto& losses = run.point(key, [&] {
      return trained(recipe, problem, s.integer("iterations"), run.draws("rounding"));
    });
    outcome.findings.push_back({key + ": loss at the end", "", losses.back()});
    // What diverges would leave no room in the plot for the rest.
    if (recipe.optimizer != s.word("drawn") || losses.back() > losses.front()) return;
    Curve curve{key.substr(key.find(',') + 2)};
    for (std::size_t i = 1; i < losses.size(); i += std::max<std::size_t>(1, losses.size() / 60))
      curve.add(static_cast<double>(i), losses[i]);
    outcome.figure.curves.push_back(curve);
  };
  using formats::fp32;
  const double beta2 = s.number("beta2");
  for (const std::string& optimizer : s.words("optimizer")) {
    train({optimizer, fp32, fp32, Keeping::nearest, beta2}, optimizer + ", all FP32");
    for (const std::string& weight : s.words("weight")) {
      const Format format = formats::require_format(weight, "weight");
      for (const auto& [word, keeping] : keepings) {
        std::string key = optimizer;
        key.append(", ").append(weight).append(" weights ").append(word);
        train({optimizer, format, fp32, keeping, beta2}, key);
      }
    }
    if (optimizer == "sgd") continue;
    for (const std::string& state : s.words("state")) {
      if (state == "fp32") continue;
      std::string key = optimizer;
      key.append(", states in ").append(state);
      train({optimizer, fp32, formats::require_format(state, "state"), Keeping::nearest, beta2},
            key);
    }
  }
}

Outcome run(Run& run) {
  Outcome outcome;
  outcome.figure = {"E38: least squares with " + run.settings().word("drawn"), "step",
                    "half the mean squared error", false, true};
  const std::size_t words = run.settings().words("weight").size();
  const std::size_t states = run.settings().words("state").size();
  run.announce(states + words * keepings.size() +
               run.settings().words("optimizer").size() * (states + words * keepings.size()));
  add_moments(run, outcome);
  add_decay(run, outcome);
  add_training(run, outcome);
  outcome.notes.emplace_back(
      "Losses have no reference: they show what the rules above do to training. "
      "States are stored without scales; "
      "in E4M3 (1 - beta2) g^2 is lost for every gradient below about 1, and steps divide by almost nothing.");
  return outcome;
}

}  // namespace
}  // namespace e38

Experiment optimizer_updates() {
  using namespace e38;
  using Kind = Parameter::Kind;
  return {
      .name = "E38",
      .slug = "optimizer_updates",
      .question = "Which optimizer states and weights may have few bits?",
      .method =
          "Which second moments of Adam cannot decay in a format; "
          "where weight decay alone takes a weight that is rounded to nearest, "
          "stochastically, with Kahan's compensation, or from an FP32 master; "
          "and a least-squares problem (24 weights, 96 samples, exact gradients) trained by SGD, "
          "momentum, Adam and AdamW, updates computed in FP32 and stored so.",
      .expected =
          "A moment of few bits is stuck where v (1 - beta2) is below half its unit: all of BF16 at 0.999 (derived); "
          "decay moves such weights only by stochastic rounding, compensation (recalled) or a master copy.",
      .parameters = {{"optimizer", "", "sgd,momentum,adam,adamw", "", Kind::word, true, 0, 0,
                      "sgd,momentum,adam,adamw"},
                     {"weight", "formats of weights", "bf16,fp16", "bf16", Kind::word, true, 0, 0,
                      "bf16,fp16,e5m2,e4m3"},
                     {"state", "formats of moments", "fp32,bf16,fp16,e5m2,e4m3", "", Kind::word,
                      true, 0, 0, "fp32,bf16,fp16,e5m2,e4m3"},
                     {"drawn", "optimizer in the plot", "adam", "", Kind::word, false, 0, 0,
                      "sgd,momentum,adam,adamw"},
                     {"beta2", "of Adam's second moment", "0.999", "", Kind::number, false, 0.5,
                      0.999999},
                     {"decay", "learning rate times weight decay", "0.0001", "", Kind::number,
                      false, 1e-7, 0.1},
                     {"steps", "of decay", "1000", "", Kind::integer, false, 1, 100000},
                     {"trials", "of stochastic rounding", "1000", "100", Kind::integer, false, 2,
                      1000000},
                     {"iterations", "of training", "2000", "400", Kind::integer, false, 1, 100000}},
      .run = run,
  };
}

}  // namespace guardbit::experiments
