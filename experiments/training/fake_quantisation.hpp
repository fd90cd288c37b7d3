#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "experiments/quantisation/calibrators.hpp"
#include "experiments/quantisation/integer_grid.hpp"
#include "experiments/training/training_tensor.hpp"

namespace guardbit::experiments::training {

class Context;

/// How the operands of a network's products become integers. Weights: symmetric, [-high, high], a
/// scale for each output. Activations: affine, without a sign, a scale for the tensor. Numbers
/// become integers as PyTorch's fake quantisation has it, x * (1 / s) to the nearest even one.
struct FakeQuantisation {
  int bits = 8;
  StraightThrough estimator = StraightThrough::pytorch;
  /// or search
  Calibrator weights = Calibrator::max;
  /// A batch's share in the running range of activations (PyTorch's moving average; its default of
  /// 0.01 is recalled).
  float average = 0.01F;
};

/// The least and the largest number that a layer's inputs are expected to have.
struct RunningRange {
  float least = 0, largest = 0;
  bool has_begun = false;

  /// The first batch's range, then `share` of the way towards each batch's. Infinities and NaNs do
  /// not count.
  void observe(const Values& values, float share);
  friend bool operator==(const RunningRange&, const RunningRange&) = default;
};

IntegerGrid weight_grid(float amax, int bits);
IntegerGrid activation_grid(const RunningRange& range, int bits);

/// The grids of a layer's operands; weights: one for each output.
struct LayerGrids {
  IntegerGrid input;
  std::vector<IntegerGrid> weights;
};

/// What fake quantisation does in a layer, forward and backward. A recipe without it passes
/// everything through.
class LayerQuantiser {
 public:
  explicit LayerQuantiser(const std::string& name);

  /// The numbers that integers stand for; kept are the numbers they were made from.
  Tensor input(Context& context, Tensor x);
  Tensor weights(Context& context, Tensor w);
  /// Gradients by those numbers become gradients by what they were made from. Learned scales get
  /// theirs.
  Tensor input_gradient(const Context& context, Tensor gradient);
  Tensor weights_gradient(const Context& context, Tensor gradient);

  /// From now on the scales are parameters, which begin where the first batch puts them (the step
  /// size of arXiv 1902.08153: 2 mean|x| / sqrt(high), recalled).
  void learn_scales(std::int64_t outputs);
  bool learns() const { return input_scale_.value.size() != 0; }
  template <class Visitor>
  void visit(const Visitor& f) {
    if (!learns()) return;
    f(input_scale_);
    f(weight_scale_);
  }

 private:
  Tensor quantised(Context& context, const Tensor& x, const std::vector<IntegerGrid>& grids) const;
  Tensor gradient(const Context& context, const Tensor& by_value, const Tensor& x,
                  const std::vector<IntegerGrid>& grids, const std::vector<float>& amax,
                  Parameter& scale) const;

  std::string name_;
  Parameter input_scale_, weight_scale_;
  Tensor x_, w_;
  LayerGrids grids_;
  std::vector<float> input_amax_, weight_amax_;
};

}  // namespace guardbit::experiments::training
