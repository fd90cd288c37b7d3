#pragma once

#include "emulator/operators/operator_tensor.hpp"

// Weights as a direction and a length: g v / |v|, a length for each slice of the first or of the
// last dimension.
namespace guardbit::emulator::operators {

struct WeightNorm {
  Tensor weight, norms;
};
/// `dimension` is the first or the last of v; nothing is known of others.
WeightNorm weight_norm(const Tensor& v, const Tensor& g, std::int64_t dimension);

struct WeightNormGradients {
  Tensor v, g;
};
WeightNormGradients weight_norm_gradients(const Tensor& gradient, const Tensor& v, const Tensor& g,
                                          const Tensor& norms, std::int64_t dimension);

}  // namespace guardbit::emulator::operators
