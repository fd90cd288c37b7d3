#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "experiments/training/context.hpp"
#include "experiments/training/fake_quantisation.hpp"
#include "experiments/training/training_tensor.hpp"

// Fake quantisation in a layer: forward, backward, and scales that are learned.
namespace guardbit::experiments::training {

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
