#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/quantisation/integer_tensor.hpp"
#include "experiments/quantisation/requantisation.hpp"
#include "experiments/quantisation/structured_sparsity.hpp"
#include "experiments/training/trainer.hpp"

namespace guardbit::experiments::training {

/// What executes an integer network.
struct IntegerExecution {
  std::string arch = "sm_80";
  RequantisationRule rule = RequantisationRule::double_rounding;
  /// layers whose weights are 2:4 sparse take the sparse instruction
  bool sparse = false;
  int threads = 0;
};

/// A network of integers: convolutions with ReLU and pool, then linear layers with ReLU between
/// them (ModelShape's cnn and mlp). Each layer multiplies its weights' integers by its input's on
/// an instruction (INT8 by UINT8, or 4 bits) into INT32, takes the input's zero point off, adds the
/// bias in units of the sums, and requantises onto the next layer's grid; the last layer's sums
/// become numbers. ReLU and pool are maxima of integers: the grids rise with their numbers, and
/// stand for zero at their zero point.
class IntegerNetwork {
 public:
  /// Weights and biases by their names, grids by the layers'. formats::Error, beginning with
  /// `where`, for other models and for grids that are missing.
  IntegerNetwork(const ModelShape& shape, const formats::TensorFile& weights,
                 const std::map<std::string, LayerGrids>& grids, const IntegerExecution& execution,
                 std::string_view where);

  struct Result {
    /// [examples, classes]
    Tensor logits;
    /// integers of each layer
    std::map<std::string, std::vector<std::uint8_t>> inputs;
  };
  Result run(const Tensor& examples) const;
  /// The instructions that multiply, each once.
  std::vector<std::string> instructions() const;

 private:
  struct LayerPlan {
    std::string name;
    bool convolves = false, pools = false, sparse = false;
    /// of a convolution; without images
    Windows windows;
    IntegerTensor weights;
    IntegerGrid input;
    std::vector<std::int32_t> bias;
    /// that a sum stands for, by outputs
    std::vector<double> factors;
  };
  void add_layer(const formats::TensorFile& weights, const std::map<std::string, LayerGrids>& grids,
                 LayerPlan layer, std::string_view where);
  std::vector<std::int32_t> sums_of(const LayerPlan& layer, const std::vector<std::uint8_t>& codes,
                                    std::int64_t rows) const;

  IntegerExecution execution_;
  std::vector<LayerPlan> layers_;
  mutable std::vector<std::string> instructions_;
};

/// What a network is worth on integers, fake-quantised in FP32 and executed.
struct IntegerEvaluation {
  Evaluation fake, executed;
  /// whose largest logits are not at one place
  std::int64_t examples = 0, other_answers = 0;
  double largest_logit = 0, logit_difference = 0;
  struct Inputs {
    std::string layer;
    /// integers, and those that are not equal
    std::int64_t numbers = 0, different = 0;
    /// difference
    std::int32_t largest = 0;
  };
  /// in the layers' order
  std::vector<Inputs> inputs;
  std::vector<std::string> instructions;
};

/// Evaluates a checkpoint both ways. `rules.recipe.quantisation` is set; ranges that are given
/// replace the checkpoint's.
IntegerEvaluation evaluate_integers(const TrainingRules& rules,
                                    const formats::TensorFile& checkpoint,
                                    const std::map<std::string, RunningRange>& ranges,
                                    const Examples& test, const IntegerExecution& execution,
                                    std::string_view where);

/// What each layer's input is on those examples, in FP32 without fake quantisation: for
/// calibrators.
std::map<std::string, Values> layer_inputs(const TrainingRules& rules,
                                           const formats::TensorFile& checkpoint,
                                           const Examples& examples, std::string_view where);
/// The range that a calibrator chooses, with those of its quirks.
RunningRange calibrated_range(Calibrator calibrator, const CalibrationQuirks& quirks,
                              const Values& inputs, int bits, std::string_view where);

/// 2:4 pruning of a layer's weights along the inputs (channels, of convolutions).
struct LayerPruning {
  std::string name;
  PruningSummary summary;
};
/// The axis of a checkpoint's weights along which they are pruned, their inputs; none where
/// ModelOpt prunes nothing: outputs that are no multiple of 8, inputs of 16.
std::optional<PruningAxis> pruned_axis(const formats::Tensor& weights);
/// Prunes the layers that ModelOpt prunes.
std::vector<LayerPruning> prune_layers(formats::TensorFile& checkpoint, std::string_view where);

}  // namespace guardbit::experiments::training
