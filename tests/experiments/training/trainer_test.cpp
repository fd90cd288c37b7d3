#include "experiments/training/trainer.hpp"

#include <cmath>
#include <memory>
#include <string>
#include <utility>

#include "experiments/harness/random_numbers.hpp"
#include "formats/support/error.hpp"
#include "tests/catch.hpp"
#include "tests/experiments/training/small_network.hpp"

namespace guardbit::experiments::training {
namespace {

TrainingRules rules_of(const std::string& recipe) {
  TrainingRules rules = small_network(recipe);
  rules.recipe.delayed.history = 4;
  if (rules.recipe.scaler) {
    rules.recipe.scaler->initial = 0x1p20;  // too much at first
    rules.recipe.scaler->interval = 3;
  }
  return rules;
}

const Examples& examples() {
  static const Examples all = draw_teacher(160, 16, 3, 5, false);
  return all;
}

/// Steps 1 to `count` on so many threads, with a checkpoint after `stop` of them.
std::pair<std::uint64_t, std::vector<StepRecord>> train(const TrainingRules& rules,
                                                        std::int64_t count, int threads,
                                                        std::int64_t stop = 0) {
  std::vector<StepRecord> log;
  auto trainer = std::make_unique<Trainer>(rules, examples(), threads, "test");
  for (std::int64_t i = 0; i < count; ++i) {
    if (stop != 0 && i == stop) {
      const formats::TensorFile checkpoint = trainer->checkpoint();
      trainer = std::make_unique<Trainer>(rules, examples(), threads, "test");
      trainer->restore(checkpoint, "checkpoint");
    }
    log.push_back(trainer->step());
  }
  return {trainer->weights_hash(), log};
}

TrainingRules with_adam(TrainingRules rules) {
  rules.optimizer.kind = OptimizerRules::Kind::adamw;
  rules.optimizer.learning_rate = 0.01F;
  rules.optimizer.weight_decay = 0.1F;
  rules.optimizer.first = formats::bf16;
  rules.optimizer.second = formats::fp16;
  rules.optimizer.state_rounding = formats::Rounding::stochastic;
  return rules;
}

}  // namespace

TEST_CASE("A run that goes on from a checkpoint, on other threads, has the same bits") {
  for (const char* recipe : {"fp32", "fp16_amp", "fp8_delayed", "bf16"}) {
    INFO(recipe);
    const TrainingRules rules = rules_of(recipe);
    const auto whole = train(rules, 9, 1);
    for (const std::int64_t stop : {1, 5, 8}) CHECK(train(rules, 9, 3, stop) == whole);
    CHECK(train(rules, 8, 1).first != whole.first);
  }
  TrainingRules rules = with_adam(rules_of("bf16"));
  rules.optimizer.weight_rounding = formats::Rounding::stochastic;
  CHECK(train(rules, 7, 1) == train(rules, 7, 2, 4));
}

TEST_CASE("Recipes learn what a teacher knows") {
  for (const char* recipe :
       {"fp32", "tf32", "fp16_amp", "bf16_amp", "fp8_delayed", "fp8_current"}) {
    INFO(recipe);
    const auto [hash, log] = train(rules_of(recipe), 60, 2);
    CHECK(log.front().loss > 0.9F);
    CHECK(log.back().loss < 0.6F);
  }
  CHECK(train(with_adam(rules_of("fp16_amp")), 60, 2).second.back().loss < 0.6F);
}

TEST_CASE("A step that overflows is skipped and halves the scale") {
  const TrainingRules rules = rules_of("fp16_amp");
  Trainer trainer(rules, examples(), 1, "test");
  const std::uint64_t before = trainer.weights_hash();
  const StepRecord first = trainer.step();
  CHECK(first.skipped);
  CHECK(first.scale == 0x1p20);
  CHECK(trainer.weights_hash() == before);
  StepRecord record = first;
  while (record.skipped) {
    CHECK(trainer.scale() == record.scale / 2);
    record = trainer.step();
  }
  CHECK(trainer.weights_hash() != before);
}

TEST_CASE("Every loss scaler trains as it is replayed, and goes on from a checkpoint") {
  for (const ScalerRules& preset : scaler_presets) {
    INFO(preset.name);
    TrainingRules rules = rules_of("fp16_amp");
    rules.recipe.scaler = preset;
    rules.recipe.scaler->initial = 0x1p19;
    rules.recipe.scaler->interval = 3;
    const auto whole = train(rules, 12, 1);
    LossScaler replayed(*rules.recipe.scaler);
    std::int64_t skipped = 0;
    for (const StepRecord& record : whole.second) {
      REQUIRE(record.scale == replayed.scale());
      static_cast<void>(replayed.update(record.skipped));
      skipped += record.skipped ? 1 : 0;
    }
    CHECK(skipped > 0);
    CHECK(skipped < 12);
    for (const std::int64_t stop : {1, 2, 7}) CHECK(train(rules, 12, 1, stop) == whole);
  }
}

TEST_CASE("Gradients are unscaled as the scalers' replay does it") {
  const Draws draws(8, "scales");
  std::uint64_t at = 0;
  for (const ScalerRules& preset : scaler_presets) {
    INFO(preset.name);
    PrecisionRecipe recipe;
    recipe.scaler = preset;
    for (int i = 0; i < 300; ++i) {
      double scale = std::exp2(60 * draws.uniform(at++) - 30);
      if (preset.type == formats::fp32) scale = static_cast<double>(static_cast<float>(scale));
      const auto scaled = static_cast<float>(draws.draw(Distribution::normal, at++));
      const UnscaledGradient expected = unscale(preset, scale, static_cast<double>(scaled));
      REQUIRE(static_cast<double>(unscale_of(recipe, scale)(scaled)) == expected.gradient);
    }
  }
}

TEST_CASE("A scaler that tests unscaled gradients sees what unscaling makes infinite") {
  TrainingRules rules = rules_of("fp16_amp");
  rules.recipe.scaler = find_scaler("flax");
  rules.recipe.scaler->initial =
      0x1p-127;  // what is scaled to nothing but zeros is unscaled to NaN
  rules.recipe.scaler->floor = 0;
  rules.recipe.scaler->unscaling = Unscaling::reciprocal;
  CHECK(Trainer(rules, examples(), 1, "test").step().skipped == false);
  rules.recipe.scaler->initial = 0x1p-140;
  CHECK(Trainer(rules, examples(), 1, "test").step().skipped);
  rules.recipe.scaler->finite_test = FiniteTest::scaled;
  CHECK_FALSE(Trainer(rules, examples(), 1, "test").step().skipped);
}

TEST_CASE("A scaler whose original raises ends the run, from a checkpoint too") {
  TrainingRules rules = rules_of("fp16_amp");
  rules.recipe.scaler = find_scaler("deepspeed");
  rules.recipe.scaler->initial = 0x1p20;
  rules.recipe.scaler->floor = 0x1p19;
  Trainer trainer(rules, examples(), 1, "test");
  CHECK(trainer.step().skipped);
  CHECK_FALSE(trainer.has_ended());
  CHECK(trainer.step().skipped);
  CHECK(trainer.has_ended());
  Trainer other(rules, examples(), 1, "test");
  other.restore(trainer.checkpoint(), "checkpoint");
  CHECK(other.has_ended());
}

TEST_CASE("A fixed scale stays, skips nothing, and is taken off again") {
  TrainingRules rules = rules_of("fp32");
  Trainer plain(rules, examples(), 1, "test");
  rules.recipe.fixed_scale = 1024;
  Trainer scaled(rules, examples(), 1, "test");
  for (int i = 0; i < 4; ++i) {
    const StepRecord a = plain.step(), b = scaled.step();
    CHECK(b.scale == 1024);
    CHECK(a.loss == b.loss);
  }
  CHECK(plain.weights_hash() == scaled.weights_hash());  // a power of two changes no FP32 gradient
}

TEST_CASE("Weights of few bits keep small updates in a rest or in a master") {
  using Keeping = OptimizerRules::Keeping;
  for (const auto kind : {OptimizerRules::Kind::sgd, OptimizerRules::Kind::adamw}) {
    TrainingRules rules = rules_of("bf16");
    rules.optimizer.kind = kind;
    rules.optimizer.learning_rate = kind == OptimizerRules::Kind::sgd ? 1e-5F : 1e-6F;
    rules.optimizer.weight_decay = 0.1F;
    const auto distance = [&](Keeping keeping) {
      rules.optimizer.keeping = keeping;
      Trainer begin(rules, examples(), 1, "test"), trainer(rules, examples(), 1, "test");
      for (int i = 0; i < 40; ++i) trainer.step();
      return *distance_of_weights(trainer.checkpoint(), begin.checkpoint());
    };
    const double nothing = distance(Keeping::nothing), rest = distance(Keeping::rest),
                 master = distance(Keeping::master);
    INFO("nothing " << nothing << ", rest " << rest << ", master " << master);
    CHECK(nothing < 0.5 * rest);
    CHECK(std::fabs(rest - master) < 0.25 * master);
    for (const Keeping keeping : {Keeping::rest, Keeping::master}) {
      rules.optimizer.keeping = keeping;
      CHECK(train(rules, 7, 2, 4) == train(rules, 7, 1));
    }
  }
}

TEST_CASE("Evaluating moves nothing") {
  const TrainingRules rules = rules_of("fp8_delayed");
  Trainer trainer(rules, examples(), 1, "test"), other(rules, examples(), 1, "test");
  for (int i = 0; i < 3; ++i) {
    const StepRecord a = trainer.step(), b = other.step();
    CHECK(a.stores[2].numbers == b.stores[2].numbers);
    const Evaluation e = trainer.evaluate(examples());
    CHECK(e.accuracy > 0.0);
  }
  CHECK(trainer.weights_hash() == other.weights_hash());
}

TEST_CASE("Checkpoints of something else are refused") {
  Trainer trainer(rules_of("fp32"), examples(), 1, "test");
  formats::TensorFile file = trainer.checkpoint();
  const auto refuses = [&](const formats::TensorFile& wrong, const std::string& word) {
    try {
      trainer.restore(wrong, "FILE");
    } catch (const formats::Error& error) {
      const std::string text = error.what();
      return text.starts_with("FILE: ") && text.find(word) != std::string::npos;
    }
    return false;
  };
  formats::TensorFile wrong = file;
  wrong.metadata["weights_hash"] = "1";
  CHECK(refuses(wrong, "damaged"));
  wrong.metadata.erase("weights_hash");
  CHECK(refuses(wrong, "weights_hash"));
  wrong = file;
  wrong.tensors.front().shape = {1, 1};
  CHECK(refuses(wrong, "another model"));
}

TEST_CASE("A small transformer learns a text that repeats") {
  TrainingRules rules;
  rules.model.kind = ModelShape::Kind::gpt;
  rules.model.classes = 4;
  rules.model.columns = 8;
  rules.model.heads = 2;
  rules.model.time = 6;
  rules.batch = 4;
  rules.optimizer.kind = OptimizerRules::Kind::adam;
  rules.optimizer.learning_rate = 0.02F;
  Examples text;
  text.inputs = zeros({8, 6});
  for (std::int64_t i = 0; i < 48; ++i) {
    text.inputs[i] = static_cast<float>(i % 4);
    text.labels.push_back(static_cast<std::int32_t>((i + 1) % 4));
  }
  for (const char* recipe : {"fp32", "bf16_amp"}) {
    rules.recipe = require_recipe(recipe, "", "test");
    Trainer trainer(rules, text, 1, "test");
    StepRecord record = trainer.step();
    CHECK(record.loss > 1.2F);
    for (int i = 0; i < 30; ++i) record = trainer.step();
    CHECK(record.loss < 0.3F);
  }
}

}  // namespace guardbit::experiments::training
