#include "experiments/training/arithmetic.hpp"
#include "experiments/training/layers.hpp"

namespace guardbit::experiments::training {

Tensor MaxPool::forward(Context& context, const Tensor& x) {
  const Format format = context.format_for(Operation::max_pool2d, x.format);
  const Tensor from = context.cast(x, format, Role::activation);
  pooling_ = {x.shape[0], x.shape[1], x.shape[2], x.shape[3], size_};
  const Pooling& p = pooling_;
  Tensor y = zeros({p.images, p.out_height(), p.out_width(), p.channels}, format);
  chosen_.assign(y.values.size(), 0);
  context.for_ranges(
      y.rows(),
      [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t row = begin; row < end; ++row) {
          const std::int64_t first = row * p.channels;
          for (std::int64_t place = 0; place < size_ * size_; ++place) {
            const float* const in =
                from.values.data() + p.source(first, place / size_, place % size_);
            float* const out = y.values.data() + first;
            std::int32_t* const chosen = chosen_.data() + first;
            for (std::int64_t c = 0; c < p.channels; ++c) {
              const bool takes = place == 0 || becomes_maximum(in[c], out[c]);
              out[c] = takes ? in[c] : out[c];
              chosen[c] = takes ? static_cast<std::int32_t>(place) : chosen[c];
            }
          }
        }
      },
      64);
  return y;
}

Tensor MaxPool::backward(Context& context, const Tensor& gradient) {
  const Pooling& p = pooling_;
  Tensor dx = zeros({p.images, p.height, p.width, p.channels}, gradient.format);
  context.for_ranges(
      gradient.rows(),
      [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t row = begin; row < end; ++row) {
          const std::int64_t first = row * p.channels;
          for (std::int64_t place = 0; place < size_ * size_; ++place) {
            float* const out = dx.values.data() + p.source(first, place / size_, place % size_);
            const float* const in = gradient.values.data() + first;
            const std::int32_t* const chosen = chosen_.data() + first;
            for (std::int64_t c = 0; c < p.channels; ++c)
              out[c] = chosen[c] == place ? in[c] : 0.0F;
          }
        }
      },
      64);
  return dx;
}

}  // namespace guardbit::experiments::training
