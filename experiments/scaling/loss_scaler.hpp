#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>

#include "formats/format.hpp"
#include "formats/format_catalogue.hpp"

namespace guardbit::experiments {

/// Which clean step makes the scale grow. `run` counts clean steps, the present one included, since
/// the last overflow or (but for multiples) growth; n is the interval.
enum class GrowthTest : std::uint8_t {
  /// run == n; a run that is past n already never ends
  reached,
  /// run >= n
  reached_or_passed,
  /// run == n + 1: the counter is tested before it counts
  exceeded,
  /// run is a multiple of n; growth does not end the run
  multiple,
  /// run - 1 is a positive multiple of n; the same (DeepSpeed @18fd4c97)
  multiple_exceeded,
};
constexpr auto words(GrowthTest) {
  return std::array{"reached", "reached_or_passed", "exceeded", "multiple", "multiple_exceeded"};
}

/// What becomes of a grown scale.
enum class Ceiling : std::uint8_t {
  /// stored as it is: past the largest number it is infinite, and stays so
  none,
  /// stored if finite, else the old one stays
  finite,
  /// at most ScalerRules::ceiling
  clamp,
};

/// How a scaled gradient is unscaled, in FP32.
enum class Unscaling : std::uint8_t {
  /// times 1/scale, rounded to FP64 and then to FP32
  reciprocal,
  /// times 1/scale, rounded to FP32 once
  fp32_reciprocal,
  /// over the scale
  division,
};

/// When gradients are looked at for infinities and NaNs.
enum class FiniteTest : std::uint8_t { scaled, unscaled };

/// A dynamic loss scaler is data: one state machine, LossScaler, reads it.
struct ScalerRules {
  std::string_view name;
  /// where the rules were read
  std::string_view source;
  /// that the scale is kept in
  formats::Format type;
  /// that factors are rounded to, and scale times factor, before the
  /// result is rounded to `type`
  formats::Format arithmetic;
  double initial = 65536;
  double growth = 2;
  double backoff = 0.5;
  /// backing off is dividing by `growth`; `backoff` is not used
  bool divides = false;
  /// the original has no such parameter, or does not use it
  bool fixed_factor = false;
  std::int64_t interval = 2000;
  GrowthTest growth_test = GrowthTest::reached;
  /// a scale that backs off stays at least here
  std::optional<double> floor = std::nullopt;
  Ceiling ceiling_rule = Ceiling::none;
  /// with Ceiling::clamp
  double ceiling = std::numeric_limits<double>::infinity();
  /// the initial scale, too, is at most `ceiling`
  bool clamps_initial = false;
  /// the overflow from which on every one backs off
  int hysteresis = 1;
  /// a clean step forgets overflows; otherwise only growth does
  bool clean_step_refills = false;
  /// ends the run where it would back off from the floor
  bool raises_at_floor = false;
  /// the host divides by the scale: an exception at zero
  bool raises_at_zero = false;
  bool needs_positive_backoff = true;
  FiniteTest finite_test = FiniteTest::scaled;
  Unscaling unscaling = Unscaling::reciprocal;
};

// Names of parameters as the originals have them; the commits are those at which they were read.
inline constexpr std::array scaler_presets = {
    ScalerRules{.name = "pytorch",
                .source = "torch.amp.GradScaler 2.11; aten/src/ATen/native/cuda/AmpKernels.cu",
                .type = formats::fp32,
                .arithmetic = formats::fp64,  // the kernel's factors are double
                .ceiling_rule = Ceiling::finite,
                .needs_positive_backoff = false},
    ScalerRules{.name = "apex",
                .source = "apex/amp/scaler.py, with min_loss_scale and max_loss_scale",
                .type = formats::fp64,  // a Python float
                .arithmetic = formats::fp64,
                .divides = true,
                .fixed_factor = true,  // scale_factor is taken and not used
                .ceiling_rule = Ceiling::clamp,
                .ceiling = 0x1p24,
                .clamps_initial = true,
                .raises_at_zero = true},
    ScalerRules{.name = "keras2",
                .source = "keras/mixed_precision/loss_scale_optimizer.py @0386a68e",
                .type = formats::fp32,
                .arithmetic = formats::fp32,
                .initial = 0x1p15,
                .divides = true,
                .growth_test = GrowthTest::reached_or_passed,
                .floor = 1,
                .ceiling_rule = Ceiling::finite,
                .finite_test = FiniteTest::unscaled,
                .unscaling = Unscaling::fp32_reciprocal},
    ScalerRules{.name = "keras3",
                .source = "keras/src/optimizers/loss_scale_optimizer.py @054e2952",
                .type = formats::fp32,
                .arithmetic = formats::fp32,
                .initial = 0x1p15,
                .divides = true,
                .fixed_factor = true,
                .unscaling = Unscaling::division},
    ScalerRules{.name = "flax",
                .source = "flax/training/dynamic_scale.py @0e5fc040",
                .type = formats::fp32,
                .arithmetic = formats::fp32,
                .growth_test = GrowthTest::exceeded,
                .floor = 0x1p-126,
                .ceiling_rule = Ceiling::clamp,
                .ceiling = 0x1.fffffep127,
                .finite_test = FiniteTest::unscaled,
                .unscaling = Unscaling::division},
    ScalerRules{
        .name = "megatron",
        .source =
            "megatron/core/optimizer/grad_scaler.py @00caa53a; defaults of megatron/training/arguments.py",
        .type = formats::fp32,
        .arithmetic = formats::fp32,  // factors are FP32 tensors
        .initial = 0x1p32,
        .interval = 1000,
        .floor = 1,
        .hysteresis = 2},
    ScalerRules{.name = "deepspeed",
                .source = "DynamicLossScaler of deepspeed/runtime/fp16/loss_scaler.py @03365187",
                .type = formats::fp64,  // a Python float
                .arithmetic = formats::fp64,
                .initial = 0x1p32,
                .divides = true,
                .interval = 1000,
                .growth_test = GrowthTest::multiple,
                .floor = 1,
                .raises_at_floor = true,
                .raises_at_zero = true},
};

/// The preset of that name (any case).
std::optional<ScalerRules> find_scaler(std::string_view name);

/// Throws ParameterError, which names the field, for parameters that no original takes.
void check(const ScalerRules& rules);

enum class ScaleChange : std::uint8_t {
  none,
  grown,
  /// should have grown, but the result is not finite and the old scale stays
  not_finite,
  /// should have grown, but is at the ceiling
  at_ceiling,
  backed_off,
  /// should have backed off, but is at the floor
  at_floor,
  /// an overflow that hysteresis forgives
  held,
  /// the original ends the run with an exception
  raised,
};
constexpr auto words(ScaleChange) {
  return std::array{"none",       "grown",    "not_finite", "at_ceiling",
                    "backed_off", "at_floor", "held",       "raised"};
}

struct ScalerUpdate {
  double before = 0, after = 0;
  bool overflow = false;
  ScaleChange change = ScaleChange::none;
};

/// The state of a loss scaler between steps. Every overflow skips the step of the optimizer whose
/// gradients were not finite; with several optimizers `overflow` is true if any found one, though
/// the others step.
class LossScaler {
 public:
  /// Throws ParameterError as check() does.
  explicit LossScaler(const ScalerRules& rules);

  const ScalerRules& rules() const { return rules_; }
  double scale() const { return scale_; }
  std::int64_t run() const { return run_; }

  /// The end of a step (of all micro-batches, where gradients accumulate).
  ScalerUpdate update(bool overflow);
  /// Replaces the scale, rounded to its type; the run of clean steps goes on (GradScaler's
  /// `update(new_scale)`).
  void set_scale(double scale);
  /// Replaces the counted run, as a checkpoint does.
  void set_run(std::int64_t run) { run_ = run; }
  /// Overflows that hysteresis still forgives; replaced as a checkpoint does.
  int forgiven_left() const { return forgiven_left_; }
  void set_forgiven_left(int left) { forgiven_left_ = left; }
  /// Replaces the interval; the run goes on.
  void set_interval(std::int64_t interval) { rules_.interval = interval; }

 private:
  bool grows();
  ScaleChange grow();
  ScaleChange back_off();

  ScalerRules rules_;
  double scale_;
  std::int64_t run_ = 0;
  int forgiven_left_;
};

/// A scaled gradient after unscaling, in FP32, and whether the step is skipped for it.
struct UnscaledGradient {
  double gradient = 0;
  /// not finite where the scaler looks
  bool found = false;
};
UnscaledGradient unscale(const ScalerRules& rules, double scale, double scaled);

/// Does a step at this scale write NaN into parameters whose scaled gradient is zero?
bool writes_nan(const ScalerRules& rules, double scale);

}  // namespace guardbit::experiments
