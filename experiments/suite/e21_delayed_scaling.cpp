#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "experiments/harness/run.hpp"
#include "experiments/scaling/block_scales.hpp"
#include "experiments/suite/suite.hpp"

namespace guardbit::experiments {

namespace e21 {
namespace {

using Algorithm = DelayedRules::Algorithm;
constexpr float largest = 448;  // of E4M3
/// Half way to what would come next: only beyond it does clamping change the nearest number.
constexpr float last_to_round = 464;

DelayedRules rules_of(Algorithm algorithm, std::int64_t history) {
  DelayedRules rules;
  rules.largest = largest;
  rules.algorithm = algorithm;
  rules.history = static_cast<std::size_t>(history);
  return rules;
}

/// Updates after `event` was seen once, the one that sees it included, that leave the scale other
/// than what the amax around them asks for.
double disturbed_updates(Algorithm algorithm, std::int64_t history, float event) {
  DelayedScale scale(rules_of(algorithm, history));
  constexpr float before = 1, after = 0.5;
  const auto step = [&](float amax) {
    scale.observe(amax);
    scale.update();
  };
  for (std::int64_t i = 0; i < history; ++i) step(before);
  step(event);
  double updates = 1;
  // Under `max` the amax before the event stays in the window as well; it goes first.
  while (scale.scale() != largest / after && updates <= 2.0 * static_cast<double>(history) + 2) {
    step(after);
    if (scale.scale() != largest / after) ++updates;
  }
  return updates;
}

/// One tensor's gradients over steps: the same normal numbers, times a factor for each step.
struct Story {
  std::string_view name;
  std::vector<float> factors;
};

std::vector<Story> stories(std::int64_t steps, float spike) {
  const auto count = static_cast<std::size_t>(steps);
  Story sudden{"spike", std::vector<float>(count, 1)};
  sudden.factors[count / 2] = spike;
  Story growing{"drift", {}}, fading{"decline", {}};
  float grown = 1, faded = 1;
  for (std::size_t i = 0; i < count; ++i, grown *= 1.02F, faded *= 0.98F) {
    growing.factors.push_back(grown);
    fading.factors.push_back(faded);
  }
  return {sudden, growing, fading};
}

/// Shares of a story's numbers, in per cent, and the scales.
struct Losses {
  double worst_saturated = 0, saturated = 0;
  std::vector<float> scales;
};

/// `algorithm` empty: scaled by the tensor's own amax.
Losses losses(const Story& story, const std::vector<float>& numbers,
              std::optional<Algorithm> algorithm, std::int64_t history) {
  DelayedScale delayed(rules_of(algorithm.value_or(Algorithm::max), history));
  Losses found;
  // The first step's scale of 1 is no property of the story.
  float amax = 0;
  for (const float x : numbers) amax = std::max(amax, std::abs(x));
  delayed.observe(amax * story.factors.front());
  delayed.update();
  for (const float factor : story.factors) {
    const float scale =
        algorithm ? delayed.scale() : te_current_scale(amax * factor, largest, false).encode;
    const auto past = std::count_if(numbers.begin(), numbers.end(), [&](float x) {
      return std::abs(x * factor * scale) > last_to_round;
    });
    const double share = 100.0 * static_cast<double>(past) / static_cast<double>(numbers.size());
    found.worst_saturated = std::max(found.worst_saturated, share);
    found.saturated += share / static_cast<double>(story.factors.size());
    found.scales.push_back(scale);
    delayed.observe(amax * factor);
    delayed.update();
  }
  return found;
}

struct Scaled {
  std::string_view name;
  std::optional<Algorithm> algorithm;
};
constexpr std::array ways = {Scaled{"delayed, max", Algorithm::max},
                             Scaled{"delayed, most recent", Algorithm::most_recent},
                             Scaled{"current", std::nullopt}};

void add_disturbances(std::int64_t history, float spike, Outcome& outcome) {
  const auto add = [&](const std::string& what, double measured, double expected) {
    outcome.findings.push_back({what, "updates", measured,
                                Reference{.value = expected,
                                          .source = "the roll of Transformer Engine's history",
                                          .certainty = Certainty::derived}});
  };
  constexpr float infinity = std::numeric_limits<float>::infinity();
  const auto window = static_cast<double>(history);
  add("max: frozen by one infinite amax", disturbed_updates(Algorithm::max, history, infinity),
      window);
  add("most recent: frozen by one infinite amax",
      disturbed_updates(Algorithm::most_recent, history, infinity), 1);
  add("max: held low by one spike", disturbed_updates(Algorithm::max, history, spike), window);
  add("most recent: held low by one spike",
      disturbed_updates(Algorithm::most_recent, history, spike), 1);
}

Outcome run(Run& run) {
  const Settings& s = run.settings();
  const std::int64_t history = s.integer("history"), steps = s.integer("steps");
  const auto spike = static_cast<float>(s.number("spike"));
  Outcome outcome;
  add_disturbances(history, spike, outcome);
  outcome.findings.push_back(
      {"the first step's scale", "", DelayedScale({}).scale(),
       Reference{
           .value = 1, .source = "Transformer Engine's source", .certainty = Certainty::read}});
  std::vector<float> numbers(static_cast<std::size_t>(s.integer("elements")));
  run.draws("numbers").fill(Distribution::normal, numbers);
  outcome.figure = {.title = "E21: scales of one tensor with a spike",
                    .x_label = "step",
                    .y_label = "scale",
                    .log_y = true};
  const auto all = stories(steps, spike);
  run.announce(all.size() * ways.size());
  for (const Story& story : all) {
    for (const Scaled& way : ways) {
      const std::string key = std::string(story.name) + ", " + std::string(way.name);
      const auto& point = run.point(key, [&] {
        const Losses lost = losses(story, numbers, way.algorithm, history);
        std::vector<double> values = {lost.worst_saturated, lost.saturated};
        values.insert(values.end(), lost.scales.begin(), lost.scales.end());
        return values;
      });
      Finding worst{key + ": saturated in the worst step", "%", point[0]};
      if (!way.algorithm)
        worst.reference = Reference{.value = 0,
                                    .source = "the scale is the tensor's own",
                                    .relation = Reference::Relation::at_most};
      outcome.findings.push_back(worst);
      outcome.findings.push_back({key + ": saturated over all steps", "%", point[1]});
      if (story.name != "spike") continue;
      Curve curve{std::string(way.name), {}, {}, Look::steps};
      for (std::size_t i = 2; i < point.size(); ++i)
        curve.add(static_cast<double>(i - 2), point[i]);
      outcome.figure.curves.push_back(curve);
    }
  }
  outcome.notes.emplace_back(
      "A delayed scale saturates the step that grows, and `max` then holds its scale low for as many steps as the history is long; "
      "an infinite amax freezes it for as long. "
      "A scale of the tensor's own does neither.");
  return outcome;
}

}  // namespace
}  // namespace e21

Experiment delayed_scaling() {
  using namespace e21;
  using Kind = Parameter::Kind;
  return {
      .name = "E21",
      .slug = "delayed_scaling",
      .question = "What does a scale from earlier steps cost, and for how long?",
      .method =
          "Transformer Engine's delayed scaling (E4M3, both algorithms) and its current scaling follow a tensor of normal numbers that once is larger, "
          "grows by 2 % a step or shrinks by 2 % a step; "
          "elements that clamping to 448 changes are counted. "
          "Apart from that, updates are counted that one infinite amax or one spike disturbs.",
      .expected =
          "One infinite amax freezes the scale for as many updates as the history is long, "
          "1024, under `max`, for one under `most_recent` (derived from the roll of the history).",
      .parameters =
          {{"history", "length of the window", "1024", "64", Kind::integer, false, 1, 8192},
           {"steps", "of each story", "200", "60", Kind::integer, false, 4, 100000},
           {"spike", "how much larger the tensor is once", "32", "", Kind::number, false, 1.5, 1e6},
           {"elements", "of the tensor", "4096", "512", Kind::integer, false, 1, 1000000}},
      .run = run,
  };
}

}  // namespace guardbit::experiments
