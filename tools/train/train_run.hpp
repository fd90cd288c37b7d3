#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/console/interruption.hpp"
#include "tools/train/train_config.hpp"

namespace guardbit::tools {

struct TrainOptions {
  std::string config, folder, digits;
  /// steps of this call; 0: all
  std::int64_t stop_after = 0;
  int threads = 0;
  bool fresh = false, json = false;
};

/// What came out of one recipe.
struct TrainResult {
  std::string recipe, title, unit;
  /// what executes the products, names joined by commas
  std::string engine;
  /// ended: by the loss scaler, as its original would
  bool complete = false, ended = false;
  /// from the first step on
  std::vector<experiments::training::StepRecord> log;
  experiments::training::Evaluation test;
  std::uint64_t weights_hash = 0;
  /// a checkpoint
  formats::TensorFile weights;
  /// of the steps that this call made
  double seconds = 0;
  /// that they took
  std::int64_t images = 0;
  /// bytes, of Trainer::memory
  std::optional<std::int64_t> memory;
};

/// Trains with one recipe, from `earlier` ones' weights where the configuration says so, going on
/// from its folder's checkpoint; ends early when asked to, with the checkpoint written.
TrainResult train_with(const TrainConfig& config, const experiments::training::Dataset& data,
                       const experiments::training::PrecisionRecipe& recipe,
                       const std::vector<TrainResult>& earlier, const TrainOptions& options,
                       const Interruption& interruption);

}  // namespace guardbit::tools
