#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "experiments/quantisation/calibrators.hpp"
#include "experiments/training/data.hpp"
#include "experiments/training/integer_network.hpp"
#include "experiments/training/trainer.hpp"

namespace guardbit::tools {

/// What `guardbit train` reads from a TOML file.
struct TrainConfig {
  struct Data {
    /// digits, idx, text, spiral, teacher
    std::string kind = "digits";
    /// of text; the folder of idx, with MNIST's file names
    std::string path;
    /// examples of generated data
    std::int64_t training = 12000, test = 2000;
    /// of spiral and teacher
    std::int64_t inputs = 16, classes = 3;
    /// of images' pixels in [0, 1]: MNIST's
    float mean = 0.1307F, deviation = 0.3081F;
  };
  /// How trained networks become integers.
  struct Quantisation {
    /// by the section, or by a recipe that trains for it
    bool is_asked_for = false;
    std::vector<int> bits = {8, 4};
    /// of activations; all when empty
    std::vector<experiments::Calibrator> calibrators;
    experiments::CalibrationQuirks quirks;
    /// training examples for them
    std::int64_t calibration = 512;
    bool prunes = true;
    experiments::training::IntegerExecution execution;
    /// Where recipes that train for it begin: empty: from scratch; a recipe before them; a file.
    std::string from;
    /// what of this decides bits of a training run
    std::string text;
  };
  Data data;
  Quantisation quantisation;
  experiments::training::ModelShape model;
  experiments::training::OptimizerRules optimizer;
  /// In the order in which they run; loss scaler and plans are put in.
  std::vector<experiments::training::PrecisionRecipe> recipes;
  /// steps 0: epochs count
  std::int64_t batch = 64, epochs = 1, steps = 0;
  std::int64_t checkpoint_every = 200, trace_every = 0;
  std::uint64_t seed = 1;
  /// of the file without what does not decide bits, for checkpoints
  std::string text;
  /// the file as it is
  std::string source;
};

/// formats::Error that names the file and the line for whatever is not known, not a number, not
/// possible.
TrainConfig read_train_config(const std::string& path);

/// The data, and the model's sizes that follow from them.
experiments::training::Dataset load_data(TrainConfig& config);

}  // namespace guardbit::tools
