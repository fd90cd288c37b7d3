#include "experiments/training/layers.hpp"

#include <algorithm>
#include <utility>

#include "experiments/training/tensor_matrix.hpp"

namespace guardbit::experiments::training {

Residual::Residual(std::vector<Layer> body) : body_(std::move(body)) {}

Tensor Residual::forward(Context& context, const Tensor& x) {
  Tensor y = x;
  for (Layer& layer : body_) y = training::forward(layer, context, y);
  x_format_ = x.format;
  y_format_ = y.format;
  Tensor sum = zeros(x.shape, context.format_for(Operation::add, x.format, y.format));
  matrix_of(sum) = matrix_of(x) + matrix_of(y);
  context.store(sum, Role::activation);
  return sum;
}

Tensor Residual::backward(Context& context, const Tensor& gradient) {
  Tensor g = context.cast(gradient, y_format_, Role::gradient);
  for (auto layer = body_.rbegin(); layer != body_.rend(); ++layer)
    g = training::backward(*layer, context, g);
  Tensor dx = context.cast(gradient, x_format_, Role::gradient);
  matrix_of(dx) += matrix_of(g);
  context.store(dx, Role::gradient);
  return dx;
}

void Residual::visit(const ParameterVisitor& f) {
  for (Layer& layer : body_) visit_parameters(layer, f);
}

void Residual::learn_scales() {
  for (Layer& layer : body_) training::learn_scales(layer);
}

Tensor forward(Layer& layer, Context& context, const Tensor& x) {
  return std::visit([&](auto& kind) { return kind.forward(context, x); }, layer.kind);
}

Tensor backward(Layer& layer, Context& context, const Tensor& gradient) {
  return std::visit([&](auto& kind) { return kind.backward(context, gradient); }, layer.kind);
}

void visit_parameters(Layer& layer, const ParameterVisitor& f) {
  std::visit(
      [&](auto& kind) {
        if constexpr (requires { kind.visit(f); }) kind.visit(f);
      },
      layer.kind);
}

void learn_scales(Layer& layer) {
  std::visit(
      [](auto& kind) {
        if constexpr (requires { kind.learn_scales(); }) kind.learn_scales();
      },
      layer.kind);
}

}  // namespace guardbit::experiments::training
