#include <utility>

#include "experiments/training/layers.hpp"
#include "experiments/training/training_arithmetic.hpp"

namespace guardbit::experiments::training {

Normalisation::Normalisation(const std::string& name, std::int64_t columns, bool centred)
    : centred_(centred),
      weight_{name + ".weight", zeros({columns}), {}},
      bias_{name + ".bias", zeros({columns}), {}} {}

Tensor Normalisation::forward(Context& context, const Tensor& x) {
  const Operation operation = centred_ ? Operation::layer_norm : Operation::rms_norm;
  const Format format = context.format_for(operation, x.format);
  x_format_ = x.format;
  normalised_ = context.cast(x, format, Role::activation);
  const std::int64_t n = x.columns();
  const auto count = static_cast<float>(n);
  inverse_deviation_.resize(static_cast<std::size_t>(x.rows()));
  Tensor y = zeros(x.shape, format);
  context.for_ranges(
      x.rows(),
      [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
          float* const row = normalised_.values.data() + i * n;
          const float mean =
              centred_ ? run_sum(n, [&](std::int64_t j) { return row[j]; }) / count : 0.0F;
          for (std::int64_t j = 0; centred_ && j < n; ++j) row[j] -= mean;
          const float inverse = inverse_deviation(
              run_sum(n, [&](std::int64_t j) { return row[j] * row[j]; }) / count);
          inverse_deviation_[static_cast<std::size_t>(i)] = inverse;
          for (std::int64_t j = 0; j < n; ++j) {
            row[j] *= inverse;
            y[i * n + j] = row[j] * weight_.value[j];
            if (centred_) y[i * n + j] += bias_.value[j];
          }
        }
      },
      16);
  context.store(y, Role::activation);
  return y;
}

Tensor Normalisation::backward(Context& context, const Tensor& gradient) {
  const std::int64_t n = gradient.columns();
  const auto count = static_cast<float>(n);
  Tensor dx = zeros(gradient.shape, gradient.format);
  Tensor by_weight = zeros(gradient.shape);
  context.for_ranges(
      gradient.rows(),
      [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
          const float* const x = normalised_.values.data() + i * n;
          const float* const dy = gradient.values.data() + i * n;
          const auto g = [&](std::int64_t j) { return dy[j] * weight_.value[j]; };
          const float mean_g = centred_ ? run_sum(n, g) / count : 0.0F;
          const float mean_gx = run_sum(n, [&](std::int64_t j) { return g(j) * x[j]; }) / count;
          for (std::int64_t j = 0; j < n; ++j) {
            dx[i * n + j] = normalisation_gradient(g(j), x[j], mean_g, mean_gx,
                                                   inverse_deviation_[static_cast<std::size_t>(i)]);
            by_weight[i * n + j] = dy[j] * x[j];
          }
        }
      },
      16);
  const Format weights = weight_.value.format;
  weight_.gradient = context.sum_of_rows(by_weight, weights, Role::gradient);
  bias_.gradient = context.sum_of_rows(gradient, weights, Role::gradient);
  context.store(dx, Role::gradient);
  return context.cast(std::move(dx), x_format_, Role::gradient);
}

void Normalisation::visit(const ParameterVisitor& f) {
  f(weight_);
  if (centred_) f(bias_);
}

}  // namespace guardbit::experiments::training
