#include <array>
#include <cmath>
#include <string>

#include "experiments/harness/run.hpp"
#include "experiments/scaling/loss_scaler.hpp"
#include "experiments/suite/suite.hpp"

namespace guardbit::experiments {

namespace e07 {
namespace {

/// Counts end here: no scale of FP64 halves or doubles so often.
constexpr int longest = 5000;

ScalerRules preset(std::string_view name) { return *find_scaler(name); }

LossScaler started_at(std::string_view name, double scale) {
  LossScaler scaler(preset(name));
  scaler.set_scale(scale);
  return scaler;
}

/// What a scaler does under nothing but overflows, from 2^16.
struct Decline {
  /// overflows until the scale stays, is zero, or the run is ended
  double steps = 0;
  /// the scale then
  double lowest = 0;
  /// the overflow that lowers the scale first
  double first_move = 0;
  /// with an exception
  bool ends_the_run = false;
};

Decline decline(std::string_view name) {
  LossScaler scaler = started_at(name, 0x1p16);
  Decline found;
  for (int step = 1; step <= longest; ++step) {
    const ScalerUpdate update = scaler.update(true);
    found.ends_the_run = update.change == ScaleChange::raised;
    if (update.after < update.before) {
      if (found.first_move == 0) found.first_move = step;
      found.steps = step;
      found.lowest = update.after;
    }
    if (found.ends_the_run || update.after == 0 || update.change == ScaleChange::at_floor) break;
  }
  return found;
}

/// The clean step at which a new scaler grows first.
double first_growth(std::string_view name) {
  LossScaler scaler(preset(name));
  // Some begin at their ceiling or past it.
  scaler.set_scale(1024);
  for (int step = 1; step <= longest; ++step)
    if (scaler.update(false).change == ScaleChange::grown) return step;
  return 0;
}

Reference recorded(double value, std::string_view source, Certainty certainty) {
  return {.value = value, .source = std::string(source), .certainty = certainty};
}

/// What is known of a preset, and how: most of its source, a few from runs.
struct Known {
  std::string_view name;
  double overflows, lowest, first_move, growth;
  std::string_view source;
  /// of first_move and growth
  Certainty certainty;
  /// of overflows and lowest; empty: as the others
  std::string_view declined_source = {};
};
constexpr std::array known = {
    Known{"pytorch", 166, 0, 1, 2000, "torch 2.11's source", Certainty::read,
          "GradScaler, torch 2.11 on an H200"},
    Known{"apex", 1091, 0, 1, 2000, "Apex's source", Certainty::read, "halvings of a Python float"},
    Known{"keras2", 16, 1, 1, 2000, "Keras 2's source", Certainty::read},
    Known{"keras3", 166, 0, 1, 2000, "Keras 3's source", Certainty::read},
    Known{"flax", 142, 0x1p-126, 1, 2001, "Flax's source", Certainty::read},
    // Window, floor and hysteresis are defaults of its command line, which were not read again.
    Known{"megatron", 17, 1, 2, 1000, "Megatron's source", Certainty::recalled},
    Known{"deepspeed", 16, 1, 1, 1000, "DeepSpeed's source", Certainty::read},
};

void add_declines(Run& run, Outcome& outcome) {
  for (const Known& x : known) {
    const std::string name(x.name);
    const auto& point = run.point(name, [&] {
      const Decline down = decline(x.name);
      return std::vector<double>{down.steps, down.lowest, down.first_move, first_growth(x.name)};
    });
    const Reference as_read = recorded(0, x.source, x.certainty);
    const Reference declined =
        x.declined_source.empty() ? as_read : recorded(0, x.declined_source, Certainty::measured);
    const auto add = [&](std::string_view what, double measured, double expected,
                         Reference reference) {
      reference.value = expected;
      outcome.findings.push_back({name + ": " + std::string(what), "", measured, reference});
    };
    add("overflows in a row from 2^16 to the lowest scale", point[0], x.overflows, declined);
    add("the lowest scale", point[1], x.lowest, declined);
    add("the overflow that lowers the scale first", point[2], x.first_move, as_read);
    add("the clean step that grows first", point[3], x.growth, as_read);
  }
}

/// PyTorch's traps: what is not found, and what is then written.
void add_traps(Outcome& outcome) {
  const std::string_view source = "GradScaler, torch 2.11 on an H200";
  const auto add = [&](std::string_view what, bool holds) {
    outcome.findings.push_back({"pytorch: " + std::string(what), "", holds ? 1.0 : 0.0,
                                recorded(1, source, Certainty::measured)});
  };
  const UnscaledGradient at_zero = unscale(preset("pytorch"), 0, 0);
  add("at scale 0 a gradient of 0 becomes NaN and the step is taken",
      std::isnan(at_zero.gradient) && !at_zero.found);
  const UnscaledGradient large = unscale(preset("pytorch"), 0x1p-20, 1e33);
  add("at 2^-20 a scaled 1e33 becomes infinite and the step is taken",
      std::isinf(large.gradient) && !large.found);
  ScalerRules eager = preset("pytorch");
  eager.interval = 1;
  LossScaler scaler(eager);
  scaler.set_scale(0x1p127);
  add("at 2^127 a growth that would be infinite leaves the scale",
      scaler.update(false).after == 0x1p127);
}

/// Scales of all presets while `overflows` overflows follow each other.
Figure figure(std::int64_t overflows) {
  Figure figure{.title = "E07: loss scales under overflows in a row, from 2^16",
                .x_label = "overflows",
                .y_label = "log2 of the scale"};
  for (const Known& x : known) {
    LossScaler scaler = started_at(x.name, 0x1p16);
    Curve curve{std::string(x.name)};
    for (std::int64_t step = 0; step <= overflows && scaler.scale() > 0; ++step) {
      curve.add(static_cast<double>(step), std::log2(scaler.scale()));
      if (scaler.update(true).change == ScaleChange::raised) break;
    }
    figure.curves.push_back(curve);
  }
  return figure;
}

Outcome run(Run& run) {
  Outcome outcome;
  run.announce(known.size());
  add_declines(run, outcome);
  add_traps(outcome);
  outcome.figure = figure(run.settings().integer("overflows"));
  outcome.notes.emplace_back(
      "Without a floor a scaler of FP32 is at zero after 166 overflows, and the next clean step writes NaN into every weight; "
      "DeepSpeed ends the run at its floor instead.");
  return outcome;
}

}  // namespace
}  // namespace e07

Experiment scaler_dynamics() {
  using namespace e07;
  return {
      .name = "E07",
      .slug = "scaler_dynamics",
      .question = "What do seven loss scalers do when nothing but overflows comes, or none?",
      .method =
          "Each preset of `guardbit scaler` starts at 2^16 and sees overflows until its scale moves no more, "
          "then at 2^10 clean steps until it grows; "
          "and PyTorch's scaler is asked what it unscales at its extremes.",
      .expected =
          "PyTorch: zero after 166 overflows, then NaN is written (measured); Apex: 1091 halvings (measured); "
          "floors, hysteresis and first growth of the others as their sources have them (read; Megatron's recalled).",
      .parameters = {{"overflows", "that the plot shows", "180", "", Parameter::Kind::integer,
                      false, 1, 2000}},
      .run = run,
  };
}

}  // namespace guardbit::experiments
