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
    std::string kind = "digits";  ///< digits, idx, text, spiral, teacher
    std::string path;             ///< of text; the folder of idx, with MNIST's file names
    std::int64_t training = 12000, test = 2000;  ///< examples of generated data
    std::int64_t inputs = 16, classes = 3;       ///< of spiral and teacher
    float mean = 0.1307F, deviation = 0.3081F;   ///< of images' pixels in [0, 1]: MNIST's
  };
  /// How trained networks become integers.
  struct Quantisation {
    bool is_asked_for = false;  ///< by the section, or by a recipe that trains for it
    std::vector<int> bits = {8, 4};
    std::vector<experiments::Calibrator> calibrators;  ///< of activations; all when empty
    experiments::CalibrationQuirks quirks;
    std::int64_t calibration = 512;  ///< training examples for them
    bool prunes = true;
    experiments::training::IntegerExecution execution;
    /// Where recipes that train for it begin: empty: from scratch; a recipe before them; a file.
    std::string from;
    std::string text;  ///< what of this decides bits of a training run
  };
  Data data;
  Quantisation quantisation;
  experiments::training::ModelShape model;
  experiments::training::OptimizerRules optimizer;
  /// In the order in which they run; loss scaler and plans are put in.
  std::vector<experiments::training::PrecisionRecipe> recipes;
  std::int64_t batch = 64, epochs = 1, steps = 0;  ///< steps 0: epochs count
  std::int64_t checkpoint_every = 200, trace_every = 0;
  std::uint64_t seed = 1;
  std::string text;    ///< of the file without what does not decide bits, for checkpoints
  std::string source;  ///< the file as it is
};

/// formats::Error that names the file and the line for whatever is not known, not a number, not
/// possible.
TrainConfig read_train_config(const std::string& path);

/// The data, and the model's sizes that follow from them.
experiments::training::Dataset load_data(TrainConfig& config);

}  // namespace guardbit::tools
