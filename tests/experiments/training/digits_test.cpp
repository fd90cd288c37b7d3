#include <string>

#include "experiments/training/trainer.hpp"
#include "tests/catch.hpp"

namespace guardbit::experiments::training {

TEST_CASE("The lecture's network reads digits in every precision", "[sweep]") {
  constexpr float mean = 0.1307F, deviation = 0.3081F;
  const Examples training = examples_of(draw_digits(12000, 2), mean, deviation);
  const Examples test = examples_of(draw_digits(2000, 3), mean, deviation);
  struct Of {
    std::string recipe, arch;
  };
  for (const Of& of : {Of{"fp32", ""},
                       {"tf32", "sm_80"},
                       {"fp16_amp", "sm_90"},
                       {"bf16_amp", "sm_90"},
                       {"fp8_delayed", "sm_90"}}) {
    INFO(of.recipe);
    TrainingRules rules;
    rules.recipe = require_recipe(of.recipe, of.arch, "test");
    rules.optimizer.learning_rate = 0.02F;
    rules.optimizer.momentum = 0.9F;
    Trainer trainer(rules, training, 0, "test");
    while (trainer.steps() < trainer.steps_per_epoch()) static_cast<void>(trainer.step());
    CHECK(trainer.evaluate(test).accuracy >= 0.97);
    // 256 examples at a time: an interruption is obeyed after the first.
    int asked = 0;
    REQUIRE(test.count() > 256);
    static_cast<void>(trainer.evaluate(test, [&] { return ++asked == 1; }));
    CHECK(asked == 1);
  }
}

}  // namespace guardbit::experiments::training
