#pragma once

#include <cstdint>
#include <optional>

#include "emulator/operators/losses.hpp"

// Losses of rows of scores whose right classes should be ahead of others by a margin. A row alone
// may have no dimension of rows.
namespace guardbit::emulator::operators {

/// multi_margin_loss: one class a row.
struct Margin {
  /// of what is lacking; 1 or 2
  int power = 1;
  double margin = 1;
  /// of classes, or null
  const Tensor* weight = nullptr;
};
LossResult margin_loss(const Margin& margin, const Tensor& input, const Tensor& target,
                       LossReduction reduction, const Machine& machine, int threads);
Tensor margin_loss_gradient(const Margin& margin, const Tensor& gradient, const Tensor& input,
                            const Tensor& target, LossReduction reduction);

/// multilabel_margin_loss: several classes a row, up to the first negative one.
struct MultilabelMargin {
  Tensor loss;
  /// 1 for the classes of each row
  Tensor is_target;
  std::string plan;
};
MultilabelMargin multilabel_margin_loss(const Tensor& input, const Tensor& target,
                                        LossReduction reduction, const Machine& machine,
                                        int threads);
/// Nothing where two warps race for the gradient of a row's last class.
std::optional<Tensor> multilabel_margin_loss_gradient(const Tensor& gradient, const Tensor& input,
                                                      const Tensor& target,
                                                      LossReduction reduction);

}  // namespace guardbit::emulator::operators
