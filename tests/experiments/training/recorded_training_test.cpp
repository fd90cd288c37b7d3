#include <bit>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "emulator/gemm/plan.hpp"
#include "experiments/harness/fingerprint.hpp"
#include "experiments/training/trainer.hpp"
#include "tests/catch.hpp"
#include "tests/places.hpp"

// What networks became on the H200, whose matrix products were the tensor core's own instructions
// (`guardbit gpu train`): every step's loss, loss scale, decision and weights, bit for bit.
namespace guardbit::tests {
namespace {

using namespace experiments::training;
using nlohmann::json;

json recording(const std::string& name) {
  std::ifstream file(tests::in_source("tests/golden/training/h200_") + name + ".json");
  REQUIRE(file.good());
  return json::parse(file);
}

/// docs/training/device_cnn.toml
TrainingRules convolutional() {
  TrainingRules rules;
  rules.model.kind = ModelShape::Kind::cnn;
  rules.model.filters = {32, 64};
  rules.model.hidden = {128};
  rules.optimizer.learning_rate = 0.02F;
  rules.optimizer.momentum = 0.9F;
  rules.batch = 64;
  rules.seed = 1;
  return rules;
}

/// docs/training/device_mlp.toml
TrainingRules perceptron() {
  TrainingRules rules;
  rules.model.kind = ModelShape::Kind::mlp;
  rules.model.hidden = {64, 32};
  rules.optimizer.kind = OptimizerRules::Kind::adamw;
  rules.optimizer.learning_rate = 0.002F;
  rules.optimizer.weight_decay = 0.01F;
  rules.batch = 50;
  rules.seed = 2;
  return rules;
}

/// The first `steps` steps of every run.
void replay(const json& recorded, TrainingRules rules, std::int64_t images, std::size_t steps) {
  Examples examples = examples_of(draw_digits(images, 2 * rules.seed), 0.1307F, 0.3081F);
  if (rules.model.kind == ModelShape::Kind::mlp) examples.inputs.shape = {images, 28 * 28};
  REQUIRE(recorded["runs"].size() == 3);
  for (const json& run : recorded["runs"]) {
    rules.recipe = require_recipe(run["recipe"].get<std::string>(), "sm_90", "test");
    rules.recipe.plans.fill(emulator::parse_plan(run["plan"].get<std::string>(), "test"));
    if (rules.recipe.scaler && rules.model.kind == ModelShape::Kind::mlp) {
      rules.recipe.scaler->initial = 16777216;
      rules.recipe.scaler->interval = 10;
    }
    Trainer trainer(rules, examples, 0, "test");
    CHECK(experiments::fingerprint_text(trainer.weights_hash()) ==
          run["initial_weights_hash"].get<std::string>());
    REQUIRE(run["steps"].size() >= 100);
    CHECK(run["difference"].is_null());
    for (std::size_t i = 0; i < std::min(steps, run["steps"].size()); ++i) {
      const json& there = run["steps"][i];
      const StepRecord here = trainer.step();
      INFO(run["recipe"] << ", step " << here.step);
      CHECK(std::bit_cast<std::uint32_t>(here.loss) == there["loss_bits"].get<std::uint32_t>());
      CHECK(here.scale == there["scale"].get<double>());
      CHECK(here.skipped == there["skipped"].get<bool>());
      REQUIRE(experiments::fingerprint_text(trainer.weights_hash()) ==
              there["weights_hash"].get<std::string>());
    }
  }
}

}  // namespace

TEST_CASE("training: a perceptron becomes what it became on the H200, first steps") {
  replay(recording("mlp"), perceptron(), 2048, 20);
}

TEST_CASE("training: networks become what they became on the H200, step by step", "[sweep]") {
  replay(recording("mlp"), perceptron(), 2048, 300);
  replay(recording("cnn"), convolutional(), 4096, 120);
}

}  // namespace guardbit::tests
