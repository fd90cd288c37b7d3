#include <utility>

#include "experiments/training/layers.hpp"

namespace guardbit::experiments::training {

Convolution::Convolution(std::string name, std::int64_t channels, std::int64_t outputs,
                         std::int64_t size)
    : name_(std::move(name)),
      filters_{name_ + ".weight", zeros({outputs, size, size, channels}), {}},
      bias_{name_ + ".bias", zeros({outputs}), {}},
      quantiser_(name_) {
  windows_.channels = channels;
  windows_.window_height = windows_.window_width = size;
}

Tensor Convolution::forward(Context& context, const Tensor& x) {
  const Format format = context.format_for(Operation::conv2d, x.format, filters_.value.format);
  x_format_ = x.format;
  windows_.images = x.shape[0];
  windows_.height = x.shape[1];
  windows_.width = x.shape[2];
  x_ = context
           .encode(name_, Role::activation,
                   quantiser_.input(context, context.cast(x, format, Role::activation)), x.rows(),
                   x.columns())
           .gathered(windows_, context.threads());
  const Tensor w = quantiser_.weights(context, context.cast(filters_.value, format, Role::weight));
  const std::int64_t outputs = w.shape[0];
  w_ = context.encode(name_, Role::weight, w, outputs, windows_.columns());
  const Tensor bias = context.cast(bias_.value, format, Role::weight);
  return context.multiply(Pass::forward, x_.by_rows(), w_.by_rows(),
                          {windows_.images, windows_.out_height(), windows_.out_width(), outputs},
                          format, Role::activation, &bias);
}

Tensor Convolution::backward(Context& context, const Tensor& gradient) {
  const Format format = gradient.format;
  const std::int64_t outputs = gradient.columns();
  const CodedMatrix g = context.encode(name_, Role::gradient, gradient, gradient.rows(), outputs);
  filters_.gradient = quantiser_.weights_gradient(
      context, context.cast(context.multiply(Pass::weight_gradient, g.for_weight_gradient(),
                                             x_.for_weight_gradient(), filters_.value.shape, format,
                                             Role::gradient),
                            filters_.value.format, Role::gradient));
  bias_.gradient = context.cast(context.sum_of_rows(gradient, format, Role::gradient),
                                bias_.value.format, Role::gradient);
  if (!needs_input_gradient && !quantiser_.learns()) return {};
  const TurnedFilters turned{outputs, windows_.window_height, windows_.window_width,
                             windows_.channels};
  const Windows over_gradient{
      windows_.images,        windows_.out_height(), windows_.out_width(),      outputs,
      windows_.window_height, windows_.window_width, windows_.window_height - 1};
  const CodedMatrix windows = g.gathered(over_gradient, context.threads());
  const CodedMatrix filters = w_.rearranged(
      windows_.channels, turned.columns(),
      [&](std::int64_t channel, std::int64_t k) { return turned.source(channel, k); });
  return quantiser_.input_gradient(
      context,
      context.cast(
          context.multiply(Pass::input_gradient, windows.by_rows(), filters.by_rows(),
                           {windows_.images, windows_.height, windows_.width, windows_.channels},
                           format, Role::gradient),
          x_format_, Role::gradient));
}

void Convolution::visit(const ParameterVisitor& f) {
  f(filters_);
  f(bias_);
  quantiser_.visit(f);
}

}  // namespace guardbit::experiments::training
