#include <algorithm>
#include <utility>

#include "experiments/training/layers.hpp"
#include "experiments/training/tensor_matrix.hpp"
#include "experiments/training/training_arithmetic.hpp"

namespace guardbit::experiments::training {

namespace {

Tensor transposed(const Tensor& x) {
  Tensor y = zeros({x.columns(), x.rows()}, x.format);
  matrix_of(y) = matrix_of(x).transpose();
  return y;
}

/// Each row's first i + 1 scores, times `scale`, through softmax; the others become 0.
Tensor causal_softmax(const Tensor& scores, float scale) {
  Tensor y = zeros(scores.shape, scores.format);
  const std::int64_t time = scores.columns();
  for (std::int64_t i = 0; i < time; ++i) {
    float maximum = 0;
    float* const row = y.values.data() + i * time;
    const float sum = softmax_sum(
        i + 1, maximum, [&](std::int64_t j) { return scores[i * time + j] * scale; },
        [&](std::int64_t j, float e) { row[j] = e; });
    for (std::int64_t j = 0; j <= i; ++j) row[j] /= sum;
  }
  return y;
}

Tensor causal_softmax_gradient(const Tensor& weights, const Tensor& gradient, float scale) {
  Tensor dx = zeros(weights.shape, weights.format);
  const std::int64_t time = weights.columns();
  for (std::int64_t i = 0; i < time; ++i) {
    const float* const y = weights.values.data() + i * time;
    const float* const g = gradient.values.data() + i * time;
    const float sum = run_sum(i + 1, [&](std::int64_t j) { return y[j] * g[j]; });
    for (std::int64_t j = 0; j <= i; ++j)
      dx[i * time + j] = softmax_gradient(y[j], g[j], sum) * scale;
  }
  return dx;
}

}  // namespace

Attention::Attention(std::string name, std::int64_t columns, std::int64_t heads)
    : name_(std::move(name)),
      columns_(columns),
      heads_(heads),
      joint_(name_ + ".qkv", columns, 3 * columns),
      out_(name_ + ".out", columns, columns) {}

/// Queries (which 0), keys (1) or values (2) of one head, [time, columns / heads]; of a tensor of
/// single columns, the head's part.
Tensor Attention::part(const Tensor& joint, std::int64_t sequence, std::int64_t which,
                       std::int64_t head) const {
  const std::int64_t width = columns_ / heads_;
  Tensor x = zeros({time_, width}, joint.format);
  matrix_of(x) =
      matrix_of(joint).block(sequence * time_, which * columns_ + head * width, time_, width);
  return x;
}

void Attention::put(const Tensor& from, Tensor& joint, std::int64_t sequence, std::int64_t which,
                    std::int64_t head) const {
  const std::int64_t width = columns_ / heads_;
  matrix_of(joint).block(sequence * time_, which * columns_ + head * width, time_, width) =
      matrix_of(from);
}

std::string Attention::head_name(std::int64_t head, std::string_view what) const {
  return name_ + ".head" + std::to_string(head) + "." + std::string(what);
}

Tensor Attention::forward(Context& context, const Tensor& x) {
  const std::int64_t sequences = x.shape[0], width = columns_ / heads_;
  time_ = x.shape[1];
  const float scale = 1.0F / square_root(static_cast<float>(width));
  const Tensor joint = joint_.forward(context, x);
  format_ = context.format_for(Operation::matmul, joint.format);
  const Format softmax = context.format_for(Operation::softmax, format_);
  Tensor y = zeros(x.shape, format_);
  kept_.clear();
  for (std::int64_t s = 0; s < sequences; ++s) {
    for (std::int64_t h = 0; h < heads_; ++h) {
      const auto coded = [&](std::int64_t which, std::string_view what) {
        return context.encode(head_name(h, what), Role::activation, part(joint, s, which, h), time_,
                              width);
      };
      Head head{coded(0, "query"), coded(1, "key"), coded(2, "value"), {}, {}};
      const Tensor scores =
          context.multiply(Pass::forward, head.query.by_rows(), head.key.by_rows(), {time_, time_},
                           format_, Role::activation);
      head.weights = causal_softmax(context.cast(scores, softmax, Role::activation), scale);
      context.store(head.weights, Role::activation);
      head.weights_coded =
          context.encode(head_name(h, "weights"), Role::activation,
                         context.cast(head.weights, format_, Role::activation), time_, time_);
      put(context.multiply(Pass::forward, head.weights_coded.by_rows(), head.value.by_columns(),
                           {time_, width}, format_, Role::activation),
          y, s, 0, h);
      kept_.push_back(std::move(head));
    }
  }
  return out_.forward(context, y);
}

Tensor Attention::backward(Context& context, const Tensor& gradient) {
  const Tensor dy = out_.backward(context, gradient);
  const std::int64_t sequences = dy.shape[0], width = columns_ / heads_;
  const float scale = 1.0F / square_root(static_cast<float>(width));
  Tensor joint = zeros({sequences, time_, 3 * columns_}, dy.format);
  for (std::int64_t s = 0; s < sequences; ++s) {
    for (std::int64_t h = 0; h < heads_; ++h) {
      const Head& head = kept_[static_cast<std::size_t>(s * heads_ + h)];
      const CodedMatrix g =
          context.encode(head_name(h, "out"), Role::gradient, part(dy, s, 0, h), time_, width);
      // A gradient is always the first operand, hence values' gradients turned.
      put(transposed(context.multiply(Pass::weight_gradient, g.by_columns(),
                                      head.weights_coded.by_columns(), {width, time_}, format_,
                                      Role::gradient)),
          joint, s, 2, h);
      const Tensor by_weights =
          context.multiply(Pass::input_gradient, g.by_rows(), head.value.by_rows(), {time_, time_},
                           format_, Role::gradient);
      Tensor by_scores = causal_softmax_gradient(head.weights, by_weights, scale);
      context.store(by_scores, Role::gradient);
      const CodedMatrix ds =
          context.encode(head_name(h, "scores"), Role::gradient,
                         context.cast(std::move(by_scores), format_, Role::gradient), time_, time_);
      put(context.multiply(Pass::input_gradient, ds.by_rows(), head.key.by_columns(),
                           {time_, width}, format_, Role::gradient),
          joint, s, 0, h);
      put(context.multiply(Pass::weight_gradient, ds.by_columns(), head.query.by_columns(),
                           {time_, width}, format_, Role::gradient),
          joint, s, 1, h);
    }
  }
  return joint_.backward(context, joint);
}

void Attention::learn_scales() {
  joint_.learn_scales();
  out_.learn_scales();
}

void Attention::visit(const ParameterVisitor& f) {
  joint_.visit(f);
  out_.visit(f);
}

}  // namespace guardbit::experiments::training
