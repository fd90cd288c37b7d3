#pragma once

#include <string>

#include "experiments/training/trainer.hpp"

/// A network that learns in a moment: 16 inputs, 24 hidden, 3 classes.
namespace guardbit::experiments::training {

inline TrainingRules small_network(const std::string& recipe) {
  TrainingRules rules;
  rules.model.kind = ModelShape::Kind::mlp;
  rules.model.inputs = 16;
  rules.model.hidden = {24};
  rules.model.classes = 3;
  rules.optimizer.learning_rate = 0.05F;
  rules.optimizer.momentum = 0.9F;
  rules.batch = 32;
  rules.recipe = require_recipe(recipe, "", "test");
  return rules;
}

}  // namespace guardbit::experiments::training
