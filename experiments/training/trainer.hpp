#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/scaling/loss_scaler.hpp"
#include "experiments/training/context.hpp"
#include "experiments/training/data.hpp"
#include "experiments/training/model.hpp"
#include "experiments/training/optimizer.hpp"
#include "formats/files/tensor_file.hpp"

namespace guardbit::experiments::training {

/// Everything that decides the bits of a run but its data.
struct TrainingRules {
  ModelShape model;
  OptimizerRules optimizer;
  PrecisionRecipe recipe;
  std::int64_t batch = 64;
  std::uint64_t seed = 1;
};

/// What a step did.
struct StepRecord {
  /// counted from 1
  std::int64_t step = 0;
  /// mean over the batch, before the loss scale
  float loss = 0;
  /// the loss scale it was made with
  double scale = 1;
  /// an overflow was found, and the weights stayed
  bool skipped = false;
  std::int64_t correct = 0, rows = 0;
  /// by Role
  std::array<StoreCounts, 3> stores{};
  friend bool operator==(const StepRecord& a, const StepRecord& b) {
    return a.step == b.step && a.loss == b.loss && a.scale == b.scale && a.skipped == b.skipped;
  }
};

struct Evaluation {
  double loss = 0, accuracy = 0;
};

/// A training run. What it does depends on rules and data alone: not on threads, and not on where
/// it was interrupted.
class Trainer {
 public:
  /// `training` must stay where it is. formats::Error, beginning with `where`, for rules that
  /// cannot be.
  Trainer(const TrainingRules& rules, const Examples& training, int threads,
          std::string_view where);

  std::int64_t steps() const { return step_; }
  std::int64_t steps_per_epoch() const { return batches_.per_epoch(); }
  Context& context() { return context_; }
  std::vector<Parameter*> parameters() { return model_.parameters(); }
  std::optional<double> scale() const;
  /// The loss scaler's original ends a run with an exception where this one has got to: no further
  /// step.
  bool has_ended() const { return has_ended_; }

  StepRecord step();
  /// Of the examples up to where `interrupted`, asked after every few hundred, says true.
  Evaluation evaluate(const Examples& test, const std::function<bool()>& interrupted = {});
  /// Bytes of weights, their gradients, the optimizer's state and what the last step's forward
  /// products took, each in its format; nothing before a step.
  std::optional<std::int64_t> memory();
  /// FNV-1a over the bits of all weights in FP32, in the parameters' order.
  std::uint64_t weights_hash();

  /// Weights, states of the optimizer, delayed scales, the loss scaler's state.
  formats::TensorFile checkpoint();
  /// Begins with the weights of another run's checkpoint; what it does not hold (learned scales)
  /// begins as usual. formats::Error, beginning with `where`, when it is of another model.
  void start_from(const formats::TensorFile& file, const std::string& where);
  /// Goes on from a checkpoint of the same rules. formats::Error, beginning with `where`, when it
  /// is another one.
  void restore(const formats::TensorFile& file, const std::string& where);

 private:
  /// The network's input; without autocast numbers are given in the weights' format.
  Tensor input_of(const Examples& examples);
  bool found_overflow(const Unscale& unscale);

  TrainingRules rules_;
  Context context_;
  Model model_;
  Optimizer optimizer_;
  std::optional<LossScaler> scaler_;
  Batches batches_;
  std::int64_t step_ = 0;
  bool has_ended_ = false;
};

/// How gradients that were made with this scale are unscaled: LossScaler's `unscale`, in FP32.
Unscale unscale_of(const PrecisionRecipe& recipe, double scale);

/// The ranges of activations that a checkpoint keeps, by the layers' names.
std::map<std::string, RunningRange> ranges_of(const formats::TensorFile& checkpoint);

/// Is a checkpoint's tensor of that name no parameter?
bool is_state(std::string_view name);
/// A layer's weights in a checkpoint: of linear layers [outputs, inputs], of convolutions
/// [outputs, rows, columns, channels].
bool is_weight(const formats::Tensor& tensor);
/// Tensors as a checkpoint holds them, in FP32.
formats::Tensor tensor_of(std::string name, const Dimensions& shape, const Values& values);
Values values_of(const formats::Tensor& tensor);

/// sqrt(sum (a - b)^2 / sum b^2) over all weights, in FP64; tensors by their names, of two
/// checkpoints. Nothing where the names differ.
std::optional<double> distance_of_weights(const formats::TensorFile& a,
                                          const formats::TensorFile& b);

}  // namespace guardbit::experiments::training
