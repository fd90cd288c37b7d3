#include "experiments/training/layers.hpp"
#include "experiments/training/training_arithmetic.hpp"

namespace guardbit::experiments::training {

namespace {

/// y[i] = f(i) for all i.
template <class F>
void for_elements(const Context& context, Tensor& y, F f) {
  context.for_ranges(y.size(), [&](std::int64_t begin, std::int64_t end) {
    float* const values = y.values.data();
    for (std::int64_t i = begin; i < end; ++i) values[i] = f(i);
  });
}

}  // namespace

Tensor Relu::forward(Context& context, const Tensor& x) {
  Tensor y = context.cast(x, context.format_for(Operation::relu, x.format), Role::activation);
  for_elements(context, y, [from = y.values.data()](std::int64_t i) { return relu(from[i]); });
  y_ = y;
  return y;
}

Tensor Relu::backward(Context& context, const Tensor& gradient) {
  Tensor dx = gradient;
  for_elements(context, dx, [y = y_.values.data(), g = gradient.values.data()](std::int64_t i) {
    return relu_gradient(y[i], g[i]);
  });
  return dx;
}

Tensor Gelu::forward(Context& context, const Tensor& x) {
  x_ = context.cast(x, context.format_for(Operation::gelu, x.format), Role::activation);
  Tensor y = zeros(x.shape, x_.format);
  for_elements(context, y, [from = x_.values.data()](std::int64_t i) { return gelu(from[i]); });
  context.store(y, Role::activation);
  return y;
}

Tensor Gelu::backward(Context& context, const Tensor& gradient) {
  Tensor dx = zeros(x_.shape, gradient.format);
  for_elements(context, dx, [x = x_.values.data(), g = gradient.values.data()](std::int64_t i) {
    return gelu_gradient(x[i], g[i]);
  });
  context.store(dx, Role::gradient);
  return dx;
}

Tensor Flatten::forward(Context&, const Tensor& x) {
  shape_ = x.shape;
  Tensor y = x;
  y.shape = {x.shape[0], x.size() / x.shape[0]};
  return y;
}

Tensor Flatten::backward(Context&, const Tensor& gradient) {
  Tensor dx = gradient;
  dx.shape = shape_;
  return dx;
}

}  // namespace guardbit::experiments::training
