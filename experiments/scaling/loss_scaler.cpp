#include "experiments/scaling/loss_scaler.hpp"

#include <bit>
#include <cmath>
#include <string>

#include "formats/arithmetic.hpp"
#include "formats/codec.hpp"
#include "formats/support/parameter_error.hpp"
#include "formats/support/suggestions.hpp"

namespace guardbit::experiments {

namespace {

formats::Value value_of(double x) {
  return formats::decode(formats::fp64, std::bit_cast<std::uint64_t>(x));
}

/// Rounded once, to nearest even; every number of the types in question is a double.
double rounded(const formats::Format& type, const formats::Unrounded& x) {
  return std::bit_cast<double>(formats::convert(type, formats::encode(type, x), formats::fp64));
}
double rounded(const formats::Format& type, double x) {
  return rounded(type, exactly(value_of(x)));
}

double product(const formats::Format& type, double x, double y) {
  return rounded(type, multiply(value_of(x), value_of(y)));
}
double quotient(const formats::Format& type, double x, double y) {
  return rounded(type, divide(value_of(x), value_of(y)));
}

double initial_scale(const ScalerRules& rules) {
  const double initial = rounded(rules.type, rules.initial);
  return rules.clamps_initial ? std::fmin(initial, rules.ceiling) : initial;
}

}  // namespace

std::optional<ScalerRules> find_scaler(std::string_view name) {
  for (const ScalerRules& rules : scaler_presets) {
    if (rules.name == formats::lower_case(name)) return rules;
  }
  return std::nullopt;
}

void check(const ScalerRules& rules) {
  const std::string name(rules.name);
  if (!std::isfinite(rules.initial))
    throw formats::ParameterError("initial", "not a finite number");
  if (!(rules.growth > 1) || !std::isfinite(rules.growth))
    throw formats::ParameterError("growth", "not a finite number above 1");
  if (!(rules.backoff < 1) || !std::isfinite(rules.backoff) ||
      (rules.needs_positive_backoff && !(rules.backoff > 0))) {
    throw formats::ParameterError("backoff", rules.needs_positive_backoff
                                                 ? "not between 0 and 1"
                                                 : "not a finite number below 1");
  }
  if (rules.needs_positive_backoff && !(rules.initial > 0))
    throw formats::ParameterError("initial", name + " needs one above 0");
  if (rules.interval < 1) throw formats::ParameterError("interval", "less than 1");
  if (rules.hysteresis < 1) throw formats::ParameterError("hysteresis", "less than 1");
  if (rules.floor && !(*rules.floor >= 0 && std::isfinite(*rules.floor)))
    throw formats::ParameterError("floor", "not a finite number from 0 on");
  if (rules.ceiling_rule == Ceiling::clamp && !(rules.ceiling > 0))
    throw formats::ParameterError("ceiling", "not above 0");
}

LossScaler::LossScaler(const ScalerRules& rules)
    : rules_(rules), scale_(initial_scale(rules)), forgiven_left_(rules.hysteresis - 1) {
  check(rules);
}

bool LossScaler::grows() {
  const std::int64_t n = rules_.interval;
  bool now = false;
  switch (rules_.growth_test) {
    case GrowthTest::reached: now = run_ == n; break;
    case GrowthTest::reached_or_passed: now = run_ >= n; break;
    case GrowthTest::exceeded: now = run_ - 1 == n; break;
    case GrowthTest::multiple: return run_ % n == 0;
    case GrowthTest::multiple_exceeded: return run_ > 1 && (run_ - 1) % n == 0;
  }
  if (now) run_ = 0;
  return now;
}

ScaleChange LossScaler::grow() {
  const double factor = rounded(rules_.arithmetic, rules_.growth);
  double grown = rounded(rules_.type, product(rules_.arithmetic, scale_, factor));
  if (rules_.ceiling_rule == Ceiling::finite && !std::isfinite(grown))
    return ScaleChange::not_finite;
  if (rules_.ceiling_rule == Ceiling::clamp)
    grown = std::fmin(grown, rounded(rules_.type, rules_.ceiling));
  if (grown == scale_ && rules_.ceiling_rule == Ceiling::clamp) return ScaleChange::at_ceiling;
  scale_ = grown;
  return ScaleChange::grown;
}

ScaleChange LossScaler::back_off() {
  const double floor = rules_.floor ? rounded(rules_.type, *rules_.floor) : 0;
  if (rules_.raises_at_floor && rules_.floor && scale_ == floor) return ScaleChange::raised;
  const formats::Format& arithmetic = rules_.arithmetic;
  double lower = rules_.divides ? quotient(arithmetic, scale_, rounded(arithmetic, rules_.growth))
                                : product(arithmetic, scale_, rounded(arithmetic, rules_.backoff));
  lower = rounded(rules_.type, lower);
  if (rules_.floor && lower < floor) lower = floor;
  const bool stays = rules_.floor && lower == scale_;
  scale_ = lower;
  return stays ? ScaleChange::at_floor : ScaleChange::backed_off;
}

ScalerUpdate LossScaler::update(bool overflow) {
  ScalerUpdate result = {scale_, scale_, overflow, ScaleChange::none};
  if (overflow) {
    run_ = 0;
    if (forgiven_left_ > 0) {
      --forgiven_left_;
      result.change = ScaleChange::held;
    } else {
      result.change = back_off();
    }
  } else {
    ++run_;
    if (rules_.clean_step_refills) forgiven_left_ = rules_.hysteresis - 1;
    if (grows()) {
      forgiven_left_ = rules_.hysteresis - 1;
      result.change = grow();
    }
  }
  result.after = scale_;
  return result;
}

void LossScaler::set_scale(double scale) { scale_ = rounded(rules_.type, scale); }

UnscaledGradient unscale(const ScalerRules& rules, double scale, double scaled) {
  double gradient = 0;
  if (rules.unscaling == Unscaling::division) {
    gradient = quotient(formats::fp32, scaled, rounded(formats::fp32, scale));
  } else {
    const bool once = rules.unscaling == Unscaling::fp32_reciprocal;
    const double reciprocal = quotient(once ? formats::fp32 : formats::fp64, 1, scale);
    gradient = product(formats::fp32, scaled, rounded(formats::fp32, reciprocal));
  }
  return {gradient, !std::isfinite(rules.finite_test == FiniteTest::scaled ? scaled : gradient)};
}

bool writes_nan(const ScalerRules& rules, double scale) {
  if (rules.raises_at_zero && scale == 0) return false;
  const UnscaledGradient zero = unscale(rules, scale, 0);
  return std::isnan(zero.gradient) && !zero.found;
}

}  // namespace guardbit::experiments
