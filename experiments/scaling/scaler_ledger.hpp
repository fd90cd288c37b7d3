#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "experiments/scaling/loss_scaler.hpp"

namespace guardbit::experiments {

/// What a run of a loss scaler gives reason to warn of. Most alarms sound once when their state is
/// entered, and again only after it was left.
enum class ScalerAlarm : std::uint8_t {
  /// the scale makes gradients smaller
  below_one,
  /// as many as the ledger was told to warn of
  skips_in_a_row,
  /// the next step that finds no overflow writes NaN: see writes_nan()
  writes_nan,
  /// the next step ends in an exception of the host language
  divides_by_zero,
  /// every later step is skipped: infinity over two is infinity
  infinite,
  /// the original ends the run with an exception
  raised,
  /// the clean run is past the interval that is tested for equality: no growth
  /// until the next overflow
  stopped,
};
constexpr auto words(ScalerAlarm) {
  return std::array{"below_one", "skips_in_a_row", "writes_nan", "divides_by_zero",
                    "infinite",  "raised",         "stopped"};
}
/// A sentence without its full stop; of skips the number goes before it.
std::string_view meaning_of(ScalerAlarm alarm);

struct ScalerEvent {
  std::uint64_t step = 0;
  ScalerAlarm alarm = ScalerAlarm::below_one;
  /// after the step
  double scale = 0;
  /// steps skipped one after the other, this one included
  int in_a_row = 0;
};

/// Runs a scaler and keeps the books.
class ScalerLedger {
 public:
  ScalerLedger(LossScaler scaler, int skips_to_warn_of);

  double scale() const { return scaler_.scale(); }
  /// The original has ended the run; further steps are not to be taken.
  bool ended() const { return ended_; }
  ScalerUpdate step(std::uint64_t step, bool overflow);

  const LossScaler& scaler() const { return scaler_; }
  const std::vector<ScalerEvent>& alarms() const { return alarms_; }
  std::uint64_t steps() const { return steps_; }
  std::uint64_t skips() const { return skips_; }
  std::uint64_t growths() const { return growths_; }
  double lowest() const { return lowest_; }
  double highest() const { return highest_; }

 private:
  void note(std::uint64_t step, ScalerAlarm alarm, bool now, bool& before);

  LossScaler scaler_;
  int skips_to_warn_of_;
  std::vector<ScalerEvent> alarms_;
  std::uint64_t steps_ = 0, skips_ = 0, growths_ = 0;
  int in_a_row_ = 0;
  double lowest_, highest_;
  bool below_one_, writes_nan_, divides_by_zero_ = false, infinite_ = false, stopped_ = false;
  bool ended_ = false;
};

}  // namespace guardbit::experiments
