#include <utility>

#include "experiments/training/layers.hpp"

namespace guardbit::experiments::training {

Linear::Linear(std::string name, std::int64_t inputs, std::int64_t outputs)
    : name_(std::move(name)),
      weight_{name_ + ".weight", zeros({outputs, inputs}), {}},
      bias_{name_ + ".bias", zeros({outputs}), {}},
      quantiser_(name_) {}

Tensor Linear::forward(Context& context, const Tensor& x) {
  const Format format = context.format_for(Operation::linear, x.format, weight_.value.format);
  x_format_ = x.format;
  x_shape_ = x.shape;
  x_ = context.encode(name_, Role::activation,
                      quantiser_.input(context, context.cast(x, format, Role::activation)),
                      x.rows(), x.columns());
  const Tensor w = quantiser_.weights(context, context.cast(weight_.value, format, Role::weight));
  w_ = context.encode(name_, Role::weight, w, w.rows(), w.columns());
  const Tensor bias = context.cast(bias_.value, format, Role::weight);
  Dimensions shape = x.shape;
  shape.back() = w.rows();
  return context.multiply(Pass::forward, x_.by_rows(), w_.by_rows(), std::move(shape), format,
                          Role::activation, &bias);
}

Tensor Linear::backward(Context& context, const Tensor& gradient) {
  const Format format = gradient.format;
  const CodedMatrix g =
      context.encode(name_, Role::gradient, gradient, gradient.rows(), gradient.columns());
  weight_.gradient = quantiser_.weights_gradient(
      context, context.cast(context.multiply(Pass::weight_gradient, g.for_weight_gradient(),
                                             x_.for_weight_gradient(), weight_.value.shape, format,
                                             Role::gradient),
                            weight_.value.format, Role::gradient));
  bias_.gradient = context.cast(context.sum_of_rows(gradient, format, Role::gradient),
                                bias_.value.format, Role::gradient);
  if (!needs_input_gradient && !quantiser_.learns()) return {};
  return quantiser_.input_gradient(
      context, context.cast(context.multiply(Pass::input_gradient, g.by_rows(), w_.by_columns(),
                                             x_shape_, format, Role::gradient),
                            x_format_, Role::gradient));
}

void Linear::visit(const ParameterVisitor& f) {
  f(weight_);
  f(bias_);
  quantiser_.visit(f);
}

}  // namespace guardbit::experiments::training
