#include <algorithm>

#include "experiments/training/layers.hpp"
#include "experiments/training/training_arithmetic.hpp"

namespace guardbit::experiments::training {

namespace {

/// The squares' element `place` of a row of channels.
void take_larger(const float* __restrict in, std::int32_t place, std::int64_t channels,
                 float* __restrict out, std::int32_t* __restrict chosen) {
  for (std::int64_t c = 0; c < channels; ++c) {
    const bool takes = becomes_maximum(in[c], out[c]);
    out[c] = takes ? in[c] : out[c];
    chosen[c] = takes ? place : chosen[c];
  }
}

void give_back(const float* __restrict gradient, const std::int32_t* __restrict chosen,
               std::int32_t place, std::int64_t channels, float* __restrict out) {
  for (std::int64_t c = 0; c < channels; ++c) out[c] = chosen[c] == place ? gradient[c] : 0.0F;
}

}  // namespace

Tensor MaxPool::forward(Context& context, const Tensor& x) {
  const Format format = context.format_for(Operation::max_pool2d, x.format);
  const Tensor from = context.cast(x, format, Role::activation);
  pooling_ = {x.shape[0], x.shape[1], x.shape[2], x.shape[3], size_};
  const Pooling& p = pooling_;
  const auto size = static_cast<std::int32_t>(size_), squares = size * size;
  Tensor y = zeros({p.images, p.out_height(), p.out_width(), p.channels}, format);
  chosen_.assign(y.values.size(), 0);
  context.for_ranges(
      y.rows(),
      [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t row = begin; row < end; ++row) {
          const std::int64_t first = row * p.channels;
          float* const out = y.values.data() + first;
          std::int32_t* const chosen = chosen_.data() + first;
          std::copy_n(from.values.data() + p.source(first, 0, 0), p.channels, out);
          for (std::int32_t place = 1; place < squares; ++place)
            take_larger(from.values.data() + p.source(first, place / size, place % size), place,
                        p.channels, out, chosen);
        }
      },
      64);
  return y;
}

Tensor MaxPool::backward(Context& context, const Tensor& gradient) {
  const Pooling& p = pooling_;
  const auto size = static_cast<std::int32_t>(size_), squares = size * size;
  Tensor dx = zeros({p.images, p.height, p.width, p.channels}, gradient.format);
  context.for_ranges(
      gradient.rows(),
      [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t row = begin; row < end; ++row) {
          const std::int64_t first = row * p.channels;
          for (std::int32_t place = 0; place < squares; ++place)
            give_back(gradient.values.data() + first, chosen_.data() + first, place, p.channels,
                      dx.values.data() + p.source(first, place / size, place % size));
        }
      },
      64);
  return dx;
}

}  // namespace guardbit::experiments::training
