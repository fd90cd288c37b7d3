#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "emulator/operators/machine.hpp"
#include "emulator/operators/operator_tensor.hpp"

// Losses and their gradients.
namespace guardbit::emulator::operators {

/// PyTorch's numbers for what becomes of the elements' losses.
enum class LossReduction : std::uint8_t { none, mean, sum };

struct LossResult {
  Tensor loss;
  std::string plan;
};

/// Losses of single elements: how far the input is from the target.
struct ElementLoss {
  enum class Kind : std::uint8_t { squared, smooth, huber, cross_entropy, logits };
  Kind kind = Kind::squared;
  /// beta of smooth_l1_loss, delta of huber_loss
  double width = 1;
  /// factors of the elements' losses, of their positive parts; null: none
  const Tensor* weight = nullptr;
  const Tensor* positive_weight = nullptr;
};
LossResult element_loss(const ElementLoss& loss, const Tensor& input, const Tensor& target,
                        LossReduction reduction, const Machine& machine, int threads);
/// Of the squared, smooth and huber losses.
LossResult element_loss_gradient(const ElementLoss& loss, const Tensor& gradient,
                                 const Tensor& input, const Tensor& target,
                                 LossReduction reduction);

struct NegativeLogLikelihood {
  Tensor loss, total_weight;
  std::string plan;
};
NegativeLogLikelihood negative_log_likelihood(const Tensor& input, const Tensor& target,
                                              const Tensor* weight, LossReduction reduction,
                                              std::int64_t ignored);
Tensor negative_log_likelihood_gradient(const Tensor& gradient, const Tensor& input,
                                        const Tensor& target, const Tensor* weight,
                                        LossReduction reduction, std::int64_t ignored,
                                        const Tensor& total_weight);

/// The same of images: classes lie along the second of four dimensions. A block of 1024 threads for
/// each image, or several for large ones; nothing where atomics add the sums of more than two.
struct ImageLikelihood {
  std::optional<Tensor> loss;
  Tensor total_weight;
};
ImageLikelihood image_likelihood(const Tensor& input, const Tensor& target, const Tensor* weight,
                                 LossReduction reduction, std::int64_t ignored);
Tensor image_likelihood_gradient(const Tensor& gradient, const Tensor& input, const Tensor& target,
                                 const Tensor* weight, LossReduction reduction,
                                 std::int64_t ignored, const Tensor& total_weight);

}  // namespace guardbit::emulator::operators
