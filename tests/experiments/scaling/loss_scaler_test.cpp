#include "experiments/scaling/loss_scaler.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <random>

#include "experiments/scaling/scaler_ledger.hpp"
#include "experiments/traces/gradient_extremes.hpp"
#include "formats/support/error.hpp"
#include "formats/tensors/storage.hpp"
#include "tests/catch.hpp"

namespace guardbit::experiments {
namespace {

ScalerRules preset(std::string_view name) {
  const auto rules = find_scaler(name);
  REQUIRE(rules.has_value());
  return *rules;
}

ScalerRules with_initial(std::string_view name, double initial, std::int64_t interval) {
  ScalerRules rules = preset(name);
  rules.initial = initial;
  rules.interval = interval;
  return rules;
}

void overflow(LossScaler& scaler, int times) {
  for (int i = 0; i < times; ++i) scaler.update(true);
}
void clean(LossScaler& scaler, int times) {
  for (int i = 0; i < times; ++i) scaler.update(false);
}

constexpr int interval = 5;

/// The scalers once more, as host arithmetic, each on its own: a step takes the overflow and
/// returns the scale after it.
using Twin = std::function<double(bool)>;

Twin pytorch_twin(float scale, double growth, double backoff) {
  return [=, tracker = 0](bool found) mutable {
    if (found) {
      scale = static_cast<float>(static_cast<double>(scale) * backoff);
      tracker = 0;
    } else if (++tracker == interval) {
      const auto grown = static_cast<float>(static_cast<double>(scale) * growth);
      if (std::isfinite(grown)) scale = grown;
      tracker = 0;
    }
    return static_cast<double>(scale);
  };
}

Twin apex_twin(double scale) {
  return [=, unskipped = 0](bool found) mutable {
    unskipped = found ? 0 : unskipped + 1;
    if (found) scale /= 2;
    if (unskipped == interval) {
      scale = std::min(0x1p24, scale * 2);
      unskipped = 0;
    }
    return scale;
  };
}

Twin keras2_twin(float scale, float multiplier) {
  return [=, counter = 0](bool found) mutable {
    if (found) {
      counter = 0;
      scale = std::max(scale / multiplier, 1.0F);
    } else if (counter + 1 >= interval) {
      counter = 0;
      if (std::isfinite(scale * multiplier)) scale *= multiplier;
    } else {
      ++counter;
    }
    return static_cast<double>(scale);
  };
}

Twin keras3_twin(float scale) {
  return [=, counter = 0](bool found) mutable {
    if (found) scale /= 2;
    if (!found && counter == interval - 1) {
      scale *= 2;
      counter = 0;
    } else {
      counter = found ? 0 : counter + 1;
    }
    return static_cast<double>(scale);
  };
}

Twin flax_twin(float scale, float growth, float backoff) {
  return [=, steps = 0](bool found) mutable {
    const bool grow = steps == interval;
    constexpr auto limits = std::numeric_limits<float>();
    if (found) {
      scale = std::max(scale * backoff, limits.min());
    } else if (grow) {
      scale = std::min(scale * growth, limits.max());
    }
    steps = grow || found ? 0 : steps + 1;
    return static_cast<double>(scale);
  };
}

Twin megatron_twin(float scale, float growth, float backoff, int hysteresis) {
  return [=, tracker = 0, left = hysteresis](bool found) mutable {
    if (found) {
      tracker = 0;
      if (--left <= 0) scale = std::max(scale * backoff, 1.0F);
    } else if (++tracker == interval) {
      tracker = 0;
      left = hysteresis;
      scale *= growth;
    }
    return static_cast<double>(scale);
  };
}

Twin deepspeed_twin(double scale, int shift, bool consecutive) {
  return [=, iteration = 0, last = -1, hysteresis = shift](bool found) mutable {
    if (found) {
      if (shift == 1 || hysteresis == 1) {
        scale = std::max(scale / 2, 1.0);
      } else {
        --hysteresis;
      }
      last = iteration;
    } else {
      if (consecutive) hysteresis = shift;
      if ((iteration - last) % interval == 0) {
        if (!consecutive) hysteresis = shift;
        scale *= 2;
      }
    }
    ++iteration;
    return scale;
  };
}

void compare(const ScalerRules& rules, const Twin& twin_of, double share_of_overflows) {
  LossScaler scaler(rules);
  Twin twin = twin_of;  // a call changes it
  std::mt19937 random(17);
  std::bernoulli_distribution found(share_of_overflows);
  for (int i = 0; i < 3000; ++i) {
    const bool is_overflow = found(random);
    CAPTURE(rules.name, i, is_overflow, share_of_overflows);
    const double expected = twin(is_overflow);
    const ScalerUpdate update = scaler.update(is_overflow);
    REQUIRE(update.after == expected);
    REQUIRE(scaler.scale() == expected);
  }
}

}  // namespace

TEST_CASE("loss scaler: every preset does what its original's arithmetic does") {
  // Up and down through the whole range, with factors that make the types differ.
  for (const double share : {0.0, 0.02, 0.1, 0.16, 0.3, 0.9}) {
    for (const double growth : {2.0, 1.7}) {
      for (const double backoff : {0.5, 0.37, 0.9}) {
        const auto with_factors = [&](std::string_view name) {
          ScalerRules rules = with_initial(name, 3e4, interval);
          rules.growth = growth;
          rules.backoff = backoff;
          return rules;
        };
        const auto up = static_cast<float>(growth);
        const auto down = static_cast<float>(backoff);
        compare(with_factors("pytorch"), pytorch_twin(3e4F, growth, backoff), share);
        compare(with_factors("flax"), flax_twin(3e4F, up, down), share);
        compare(with_factors("megatron"), megatron_twin(3e4F, up, down, 2), share);
        compare(with_factors("keras2"), keras2_twin(3e4F, up), share);
      }
    }
    compare(with_initial("apex", 3e4, interval), apex_twin(3e4), share);
    compare(with_initial("keras3", 3e4, interval), keras3_twin(3e4F), share);
    for (const int shift : {1, 2, 5}) {
      for (const bool consecutive : {false, true}) {
        ScalerRules rules = with_initial("deepspeed", 3e4, interval);
        rules.hysteresis = shift;
        rules.clean_step_refills = consecutive;
        rules.raises_at_floor = false;
        compare(rules, deepspeed_twin(3e4, shift, consecutive), share);
      }
    }
  }
}

TEST_CASE("loss scaler: defaults of the originals") {
  const auto has = [](std::string_view name, double initial, std::int64_t clean_steps) {
    LossScaler scaler(preset(name));
    CHECK(scaler.scale() == initial);
    clean(scaler, static_cast<int>(clean_steps) - 1);
    CHECK(scaler.scale() == initial);
    clean(scaler, 1);
    CAPTURE(name);
    CHECK(scaler.scale() == 2 * initial);
  };
  has("pytorch", 0x1p16, 2000);
  has("apex", 0x1p16, 2000);
  has("keras2", 0x1p15, 2000);
  has("keras3", 0x1p15, 2000);
  has("flax", 0x1p16, 2001);  // the counter is tested before it counts
  has("megatron", 0x1p32, 1000);
  has("deepspeed", 0x1p32, 1000);
  CHECK(find_scaler("PyTorch")->name == "pytorch");
  CHECK_FALSE(find_scaler("torch").has_value());
}

TEST_CASE("loss scaler: PyTorch's scale reaches zero after 166 overflows, Apex's after 1091") {
  LossScaler pytorch(preset("pytorch"));
  overflow(pytorch, 165);
  CHECK(pytorch.scale() == 0x1p-149);
  overflow(pytorch, 1);  // half of the least number is a tie, to even
  CHECK(pytorch.scale() == 0);

  LossScaler apex(preset("apex"));
  overflow(apex, 1090);
  CHECK(apex.scale() == 0x1p-1074);
  overflow(apex, 1);
  CHECK(apex.scale() == 0);

  LossScaler keras3(preset("keras3"));  // no floor; one halving fewer from 2^15
  overflow(keras3, 165);
  CHECK(keras3.scale() == 0);
}

TEST_CASE("loss scaler: a clean step at scale zero writes NaN, unfound") {
  const ScalerRules pytorch = preset("pytorch");
  const UnscaledGradient zero = unscale(pytorch, 0, 0);
  CHECK(std::isnan(zero.gradient));
  CHECK_FALSE(zero.found);
  // 1/scale is infinite in FP32 from 2^-128 on: long before the scale is zero.
  CHECK(writes_nan(pytorch, 0));
  CHECK(writes_nan(pytorch, 0x1p-128));
  CHECK_FALSE(writes_nan(pytorch, 0x1p-127));
  CHECK_FALSE(writes_nan(preset("keras3"), 0x1p-149));  // divides, and 0 / 2^-149 is 0
  CHECK(writes_nan(preset("keras3"), 0));
  // These look after unscaling, and find it.
  CHECK_FALSE(writes_nan(preset("flax"), 0));
  CHECK_FALSE(writes_nan(preset("keras2"), 0));
  // Python's 1. / 0. raises; what it divides by before is narrowed to FP32 by the kernel.
  CHECK_FALSE(writes_nan(preset("apex"), 0));
  CHECK(writes_nan(preset("apex"), 0x1p-1074));
}

TEST_CASE("loss scaler: a finite scaled gradient overflows when it is unscaled") {
  ScalerRules pytorch = with_initial("pytorch", 0x1p-20, 1);
  const UnscaledGradient gradient = unscale(pytorch, 0x1p-20, -1e33);
  CHECK(gradient.gradient == -std::numeric_limits<double>::infinity());
  CHECK_FALSE(gradient.found);  // so the step is taken, and the scale grows
  LossScaler scaler(pytorch);
  CHECK(scaler.update(gradient.found).after == 0x1p-19);
  // Flax looks after unscaling: it skips, and the scale that was too small gets smaller.
  const ScalerRules flax = with_initial("flax", 0x1p-20, 1);
  CHECK(unscale(flax, 0x1p-20, -1e33).found);
  CHECK(LossScaler(flax).update(true).after == 0x1p-21);
}

TEST_CASE("loss scaler: growth past the largest number") {
  LossScaler pytorch(with_initial("pytorch", 0x1p127, 1));
  CHECK(pytorch.update(false).change == ScaleChange::not_finite);
  CHECK(pytorch.scale() == 0x1p127);
  CHECK(pytorch.run() == 0);
  LossScaler keras2(with_initial("keras2", 0x1p127, 1));
  clean(keras2, 1);
  CHECK(keras2.scale() == 0x1p127);
  LossScaler flax(with_initial("flax", 0x1p127, 1));
  clean(flax, 2);
  CHECK(flax.scale() == 0x1.fffffep127);
  LossScaler apex(with_initial("apex", 0x1p23, 1));
  clean(apex, 3);
  CHECK(apex.scale() == 0x1p24);
  CHECK(LossScaler(with_initial("apex", 0x1p30, 1)).scale() == 0x1p24);
  // No test: infinite, and half of infinity is infinity.
  for (const char* name : {"keras3", "megatron"}) {
    LossScaler scaler(with_initial(name, 0x1p127, 1));
    clean(scaler, 1);
    CHECK(std::isinf(scaler.scale()));
    overflow(scaler, 10);
    CHECK(std::isinf(scaler.scale()));
  }
}

TEST_CASE("loss scaler: floors") {
  const auto lowest = [](std::string_view name) {
    LossScaler scaler(preset(name));
    overflow(scaler, 300);
    return scaler.scale();
  };
  CHECK(lowest("keras2") == 1);
  CHECK(lowest("flax") == 0x1p-126);
  CHECK(lowest("megatron") == 1);
  LossScaler deepspeed(with_initial("deepspeed", 4, 1000));
  overflow(deepspeed, 2);
  CHECK(deepspeed.scale() == 1);
  CHECK(deepspeed.update(true).change == ScaleChange::raised);
  CHECK(deepspeed.scale() == 1);
}

TEST_CASE("loss scaler: a run past the interval never ends where only equality is tested") {
  const auto after_lowering = [](std::string_view name) {
    LossScaler scaler(with_initial(name, 1024, 100));
    clean(scaler, 50);
    scaler.set_interval(20);
    clean(scaler, 200);
    return scaler.scale();
  };
  CHECK(after_lowering("pytorch") == 1024);
  CHECK(after_lowering("megatron") == 1024);
  CHECK(after_lowering("flax") == 1024);
  CHECK(after_lowering("keras2") > 1024);
  LossScaler scaler(with_initial("pytorch", 1024, 100));
  clean(scaler, 50);
  scaler.set_interval(20);
  overflow(scaler, 1);
  clean(scaler, 20);
  CHECK(scaler.scale() == 1024);  // halved, and grown again
}

TEST_CASE("loss scaler: a new scale leaves the run alone") {
  LossScaler scaler(with_initial("pytorch", 1024, 10));
  clean(scaler, 9);
  scaler.set_scale(100.1);
  CHECK(scaler.scale() == static_cast<double>(100.1F));
  clean(scaler, 1);
  CHECK(scaler.scale() == 2 * static_cast<double>(100.1F));
}

TEST_CASE("loss scaler: hysteresis counts all overflows since growth, not those in a row") {
  LossScaler megatron(with_initial("megatron", 1024, 10));
  overflow(megatron, 1);
  CHECK(megatron.scale() == 1024);  // forgiven
  clean(megatron, 5);
  overflow(megatron, 1);
  CHECK(megatron.scale() == 512);
  clean(megatron, 5);
  overflow(megatron, 1);  // spent: every one counts
  CHECK(megatron.scale() == 256);
  clean(megatron, 10);
  CHECK(megatron.scale() == 512);
  CHECK(megatron.update(true).change == ScaleChange::held);  // growth refills

  ScalerRules rules = with_initial("deepspeed", 1024, 10);
  rules.hysteresis = 2;
  rules.clean_step_refills = true;
  LossScaler deepspeed(rules);
  overflow(deepspeed, 1);
  clean(deepspeed, 1);
  CHECK(deepspeed.update(true).change == ScaleChange::held);
}

TEST_CASE("loss scaler: DeepSpeed grows at every multiple of its window") {
  LossScaler scaler(with_initial("deepspeed", 1024, 10));
  clean(scaler, 9);
  CHECK(scaler.scale() == 1024);
  clean(scaler, 1);
  CHECK(scaler.scale() == 2048);
  clean(scaler, 10);
  CHECK(scaler.scale() == 4096);
  CHECK(scaler.run() == 20);
  // Newer versions leave out the step after the overflow.
  ScalerRules rules = with_initial("deepspeed", 1024, 10);
  rules.growth_test = GrowthTest::multiple_exceeded;
  LossScaler newer(rules);
  clean(newer, 10);
  CHECK(newer.scale() == 1024);
  clean(newer, 1);
  CHECK(newer.scale() == 2048);
  clean(newer, 10);
  CHECK(newer.scale() == 4096);
}

TEST_CASE("loss scaler: PyTorch takes any backoff below one, the others do not") {
  ScalerRules rules = preset("pytorch");
  rules.backoff = -0.5;
  LossScaler scaler(rules);
  CHECK(scaler.update(true).after == -0x1p15);
  rules.backoff = 0;
  CHECK(LossScaler(rules).update(true).after == 0);
  rules.backoff = 1;
  CHECK_THROWS_AS(LossScaler(rules), formats::Error);
  ScalerRules megatron = preset("megatron");
  megatron.backoff = 0;
  CHECK_THROWS_AS(LossScaler(megatron), formats::Error);
  for (const double growth : {1.0, 0.5, std::numeric_limits<double>::infinity()}) {
    megatron = preset("megatron");
    megatron.growth = growth;
    CHECK_THROWS_AS(LossScaler(megatron), formats::Error);
  }
  CHECK_THROWS_AS(LossScaler(with_initial("flax", 0, 1)), formats::Error);
  CHECK_THROWS_AS(LossScaler(with_initial("flax", 1, 0)), formats::Error);
}

TEST_CASE("scaler ledger: alarms sound once for each state") {
  ScalerLedger ledger(LossScaler(preset("pytorch")), 3);
  for (std::uint64_t i = 0; i < 170; ++i) ledger.step(i, true);
  ledger.step(170, false);
  for (std::uint64_t i = 171; i < 174; ++i) ledger.step(i, true);
  std::vector<std::pair<std::uint64_t, ScalerAlarm>> alarms;
  for (const ScalerEvent& event : ledger.alarms()) alarms.emplace_back(event.step, event.alarm);
  CHECK(alarms == std::vector<std::pair<std::uint64_t, ScalerAlarm>>{
                      {2, ScalerAlarm::skips_in_a_row},
                      {16, ScalerAlarm::below_one},
                      {143, ScalerAlarm::writes_nan},  // 2^-128
                      {173, ScalerAlarm::skips_in_a_row}});
  CHECK(ledger.skips() == 173);
  CHECK(ledger.lowest() == 0);

  ScalerLedger keras3(LossScaler(with_initial("keras3", 0x1p126, 1)), 3);
  keras3.step(0, false);
  keras3.step(1, false);
  REQUIRE(keras3.alarms().size() == 1);
  CHECK(keras3.alarms()[0].alarm == ScalerAlarm::infinite);

  ScalerLedger deepspeed(LossScaler(with_initial("deepspeed", 1, 1)), 3);
  deepspeed.step(0, true);
  CHECK(deepspeed.ended());
  CHECK(deepspeed.alarms()[0].alarm == ScalerAlarm::raised);

  LossScaler late(with_initial("pytorch", 1, 10));
  late.set_run(30);
  ScalerLedger stopped(late, 3);
  stopped.step(0, false);
  REQUIRE(stopped.alarms().size() == 1);
  CHECK(stopped.alarms()[0].alarm == ScalerAlarm::stopped);
}

TEST_CASE("gradient extremes: the largest magnitude decides, to the bit") {
  const auto overflows = [](float x, double ratio, const formats::Format& to) {
    const std::vector<std::uint64_t> codes = {0, std::bit_cast<std::uint32_t>(1e-9F),
                                              std::bit_cast<std::uint32_t>(-x), 0x80000000U};
    const auto tensor =
        formats::tensor_of_codes("g", formats::fp32, formats::Packing::container, {4}, codes);
    return overflowing_element(gradient_extremes(formats::streamed(tensor)), ratio, to);
  };
  CHECK_FALSE(overflows(65519.0F, 1, formats::fp16));
  CHECK(overflows(65520.0F, 1, formats::fp16) == 2U);
  CHECK_FALSE(overflows(65504.0F / 1024, 1024, formats::fp16));
  CHECK(overflows(65520.0F / 1024, 1024, formats::fp16) == 2U);
  CHECK_FALSE(overflows(464, 1, formats::e4m3));  // a tie, to 448
  CHECK(overflows(465, 1, formats::e4m3) == 2U);
  // The product is rounded to FP32 first, which takes it to 65520.
  CHECK(overflows(0x1.ffdffep15F, 1 + 0x1p-24, formats::fp16) == 2U);
  CHECK_FALSE(overflows(0x1.ffdffep15F, 1, formats::fp16));
  const auto nan = formats::tensor_of_codes("g", formats::fp32, formats::Packing::container, {2},
                                            std::vector<std::uint64_t>{0, 0x7FC00000});
  CHECK(overflowing_element(gradient_extremes(formats::streamed(nan)), 0x1p-100, formats::fp16) ==
        1U);
  const auto empty = formats::tensor_of_codes("g", formats::fp32, formats::Packing::container, {0},
                                              std::vector<std::uint64_t>{});
  CHECK_FALSE(
      overflowing_element(gradient_extremes(formats::streamed(empty)), 0x1p100, formats::fp16));
}

}  // namespace guardbit::experiments
