#pragma once

#include <cstdint>
#include <vector>

#include "experiments/quantisation/calibrators.hpp"
#include "experiments/quantisation/integer_grid.hpp"
#include "experiments/training/training_tensor.hpp"

namespace guardbit::experiments::training {

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

}  // namespace guardbit::experiments::training
