#include "experiments/scaling/scaler_ledger.hpp"

#include <algorithm>
#include <cmath>

namespace guardbit::experiments {

std::string_view meaning_of(ScalerAlarm alarm) {
  switch (alarm) {
    case ScalerAlarm::below_one: return "the scale is below 1: it makes gradients smaller";
    case ScalerAlarm::skips_in_a_row: return "steps in a row were skipped";
    case ScalerAlarm::writes_nan:
      return "the next step will write NaN: at this scale zero unscales to NaN, after the test for infinities";
    case ScalerAlarm::divides_by_zero: return "the next step will raise: 1/scale with scale 0";
    case ScalerAlarm::infinite:
      return "the scale is infinite: every further step is skipped, and half of it is infinite";
    case ScalerAlarm::raised: return "the scaler raises: an overflow at the smallest scale";
    case ScalerAlarm::stopped:
      return "the scale does not grow until the next overflow: the run of clean steps is past the interval, and only equality is tested";
  }
  return "";
}

ScalerLedger::ScalerLedger(LossScaler scaler, int skips_to_warn_of)
    : scaler_(scaler),
      skips_to_warn_of_(skips_to_warn_of),
      lowest_(scaler.scale()),
      highest_(scaler.scale()),
      below_one_(scaler.scale() < 1),
      writes_nan_(writes_nan(scaler.rules(), scaler.scale())) {}

void ScalerLedger::note(std::uint64_t step, ScalerAlarm alarm, bool now, bool& before) {
  if (now && !before) alarms_.push_back({step, alarm, scale(), in_a_row_});
  before = now;
}

ScalerUpdate ScalerLedger::step(std::uint64_t step, bool overflow) {
  const ScalerUpdate update = scaler_.update(overflow);
  const ScalerRules& rules = scaler_.rules();
  ++steps_;
  if (overflow) ++skips_;
  if (update.change == ScaleChange::grown) ++growths_;
  lowest_ = std::min(lowest_, update.after);
  highest_ = std::max(highest_, update.after);
  in_a_row_ = overflow ? in_a_row_ + 1 : 0;
  if (in_a_row_ == skips_to_warn_of_)
    alarms_.push_back({step, ScalerAlarm::skips_in_a_row, scale(), in_a_row_});
  note(step, ScalerAlarm::below_one, update.after < 1, below_one_);
  note(step, ScalerAlarm::writes_nan, writes_nan(rules, update.after), writes_nan_);
  note(step, ScalerAlarm::divides_by_zero, rules.raises_at_zero && update.after == 0,
       divides_by_zero_);
  note(step, ScalerAlarm::infinite, std::isinf(update.after), infinite_);
  const bool tests_equality =
      rules.growth_test == GrowthTest::reached || rules.growth_test == GrowthTest::exceeded;
  const std::int64_t last = rules.interval + (rules.growth_test == GrowthTest::exceeded ? 1 : 0);
  note(step, ScalerAlarm::stopped, tests_equality && scaler_.run() >= last, stopped_);
  if (update.change == ScaleChange::raised)
    alarms_.push_back({step, ScalerAlarm::raised, scale(), in_a_row_});
  ended_ = ended_ || update.change == ScaleChange::raised || divides_by_zero_;
  return update;
}

}  // namespace guardbit::experiments
