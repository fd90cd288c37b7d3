#include "experiments/training/layers.hpp"

namespace guardbit::experiments::training {

Embedding::Embedding(const std::string& name, std::int64_t tokens, std::int64_t places,
                     std::int64_t columns)
    : tokens_{name + ".tokens", zeros({tokens, columns}), {}},
      places_{name + ".places", zeros({places, columns}), {}} {}

Tensor Embedding::forward(Context& context, const Tensor& x) {
  x_ = x;
  const std::int64_t columns = tokens_.value.columns(), time = x.columns();
  Tensor y = zeros({x.rows(), time, columns}, tokens_.value.format);
  for (std::int64_t i = 0; i < x.size(); ++i) {
    const auto token = static_cast<std::int64_t>(x[i]);
    for (std::int64_t j = 0; j < columns; ++j)
      y[i * columns + j] =
          tokens_.value[token * columns + j] + places_.value[i % time * columns + j];
  }
  context.store(y, Role::activation);
  return y;
}

Tensor Embedding::backward(Context& context, const Tensor& gradient) {
  const std::int64_t columns = tokens_.value.columns(), time = x_.columns();
  tokens_.gradient = zeros(tokens_.value.shape, tokens_.value.format);
  places_.gradient = zeros(places_.value.shape, places_.value.format);
  for (std::int64_t i = 0; i < x_.size(); ++i) {
    const auto token = static_cast<std::int64_t>(x_[i]);
    for (std::int64_t j = 0; j < columns; ++j) {
      tokens_.gradient[token * columns + j] += gradient[i * columns + j];
      places_.gradient[i % time * columns + j] += gradient[i * columns + j];
    }
  }
  context.store(tokens_.gradient, Role::gradient);
  context.store(places_.gradient, Role::gradient);
  return {};
}

void Embedding::visit(const ParameterVisitor& f) {
  f(tokens_);
  f(places_);
}

}  // namespace guardbit::experiments::training
