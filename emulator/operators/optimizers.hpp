#pragma once

#include <cstdint>
#include <optional>

#include "emulator/operators/operator_tensor.hpp"

// Steps of optimizers that one kernel does for many tensors (torch.optim with fused=True), and the
// scaler of automatic mixed precision. Everything is FP32 but where it says otherwise; what is
// stored is rounded once to the tensor's type.
namespace guardbit::emulator::operators {

/// The tensors of one parameter that a step reads and changes.
struct OptimizerState {
  Tensor parameter, gradient;
  /// Adam: the mean of gradients; SGD: the momentum; Adagrad: the sum of squares
  std::optional<Tensor> first;
  /// Adam: the mean of squares
  std::optional<Tensor> second;
  /// Adam with amsgrad: the greatest mean of squares
  std::optional<Tensor> greatest;
};

/// What a call gives an optimizer. Kernels round these numbers to FP32 first, those of Adagrad
/// stay FP64.
struct OptimizerParameters {
  double lr = 0, weight_decay = 0, eps = 0;
  /// Adam
  double beta1 = 0, beta2 = 0;
  /// SGD
  double momentum = 0, dampening = 0;
  /// Adagrad
  double lr_decay = 0;
  /// the step's number, counted from 1
  float step = 1;
  bool maximize = false, nesterov = false, is_first_step = false;
  /// AdamW: weights decay apart from the gradient
  bool is_decoupled = false;
  /// the gradient is divided by it, and stored so
  std::optional<float> grad_scale;
};

/// m = fma(b1, m, fma(-b1, g, g)), v = fma(b2, v, fma(-b2, g g, g g)),
/// p - ((lr / (1 - b1^step)) m) / (sqrt(v) / sqrt(1 - b2^step) + eps). In Adam the weight's share
/// of the gradient is fma(p, wd, g) but for some of the elements that a thread takes together,
/// which round p wd first.
OptimizerState adam_step(const OptimizerState& before, const OptimizerParameters& parameters,
                         int threads);

/// g = fma(wd, p, g); momentum = fma(1 - dampening, g, momentum times its weight), g itself in the
/// first step; fma(-lr, momentum, p).
OptimizerState sgd_step(const OptimizerState& before, const OptimizerParameters& parameters,
                        int threads);

/// Sums and quotients in FP64, what is stored in FP32.
OptimizerState adagrad_step(const OptimizerState& before, const OptimizerParameters& parameters,
                            int threads);

/// A gradient times the inverse of a loss scale; `has_infinity` becomes true where it was not
/// finite.
Tensor unscaled_gradient(const Tensor& gradient, float inverse_scale, bool& has_infinity);

/// A loss scale and its count of steps without an infinity.
struct LossScale {
  float scale = 1;
  std::int32_t growth_tracker = 0;
};
/// What a step makes of it: backed off after an infinity, grown after `growth_interval` steps
/// without, by products in FP64 that are rounded once.
LossScale updated_loss_scale(LossScale before, bool has_infinity, double growth_factor,
                             double backoff_factor, std::int64_t growth_interval);

}  // namespace guardbit::emulator::operators
