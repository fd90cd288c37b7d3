#include "experiments/training/layer_quantiser.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <utility>

#include "experiments/training/training_arithmetic.hpp"

namespace guardbit::experiments::training {

namespace {

constexpr float least_scale = 0x1p-23F;  // PyTorch's

/// Where arXiv 1902.08153 begins a scale: 2 mean|x| / sqrt(high).
float first_scale(std::span<const float> x, const IntegerGrid& grid) {
  const auto count = static_cast<std::int64_t>(x.size());
  const float sum =
      run_sum(count, [&](std::int64_t i) { return std::fabs(x[static_cast<std::size_t>(i)]); });
  const float mean = sum / static_cast<float>(count);
  return std::max(2 * mean / square_root(static_cast<float>(grid.high)), least_scale);
}

/// The same grid with another scale; the zero point still stands for zero as near as it can.
IntegerGrid with_scale(const IntegerGrid& grid, float scale, float least) {
  IntegerGrid scaled = grid;
  scaled.factor = std::max(scale, least_scale);
  if (grid.low == 0) {
    const float zero = -std::nearbyint(std::min(least, 0.0F) / scaled.factor);
    scaled.zero = static_cast<std::int32_t>(std::min(zero, static_cast<float>(grid.high)));
  }
  return scaled;
}

}  // namespace

LayerQuantiser::LayerQuantiser(const std::string& name)
    : name_(name),
      input_scale_{name + ".input_scale", {}, {}},
      weight_scale_{name + ".weight_scale", {}, {}} {}

void LayerQuantiser::learn_scales(std::int64_t outputs) {
  input_scale_.value = zeros({1});
  weight_scale_.value = zeros({outputs});
}

Tensor LayerQuantiser::quantised(Context& context, const Tensor& x,
                                 const std::vector<IntegerGrid>& grids) const {
  Tensor y = zeros(x.shape, x.format);
  const std::int64_t width = x.size() / std::ssize(grids);
  context.for_ranges(x.size(), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i)
      y[i] = x[i] != x[i] ? x[i] : grids[static_cast<std::size_t>(i / width)].fake_quantised(x[i]);
  });
  return y;
}

Tensor LayerQuantiser::input(Context& context, Tensor x) {
  const auto& rules = context.recipe().quantisation;
  if (!rules) return x;
  RunningRange& range = context.ranges()[name_];
  // A scale that is learned needs the range for nothing but the zero point.
  if (context.observes() && !(learns() && range.has_begun)) range.observe(x.values, rules->average);
  grids_.input = activation_grid(range, rules->bits);
  if (learns()) {
    float& scale = input_scale_.value[0];
    if (scale == 0) scale = first_scale(x.values, grids_.input);
    grids_.input = with_scale(grids_.input, scale, range.least);
  }
  input_amax_ = {std::max(std::fabs(range.least), std::fabs(range.largest))};
  Tensor y = quantised(context, x, {grids_.input});
  x_ = std::move(x);
  return y;
}

Tensor LayerQuantiser::weights(Context& context, Tensor w) {
  const auto& rules = context.recipe().quantisation;
  if (!rules) return w;
  const std::int64_t outputs = w.shape[0];
  const auto width = static_cast<std::size_t>(w.size() / outputs);
  grids_.weights.resize(static_cast<std::size_t>(outputs));
  weight_amax_.resize(grids_.weights.size());
  CalibrationOptions options;
  options.bits = rules->bits;
  for (std::size_t o = 0; o < grids_.weights.size(); ++o) {
    const std::span<const float> row(w.values.data() + o * width, width);
    weight_amax_[o] = calibrated_amax(rules->weights, row, options, name_ + ".weight");
    grids_.weights[o] = weight_grid(weight_amax_[o], rules->bits);
    if (!learns()) continue;
    float& scale = weight_scale_.value.values[o];
    if (scale == 0) scale = first_scale(row, grids_.weights[o]);
    grids_.weights[o] = with_scale(grids_.weights[o], scale, 0);
  }
  context.layer_grids()[name_] = grids_;
  Tensor y = quantised(context, w, grids_.weights);
  w_ = std::move(w);
  return y;
}

Tensor LayerQuantiser::gradient(const Context& context, const Tensor& by_value, const Tensor& x,
                                const std::vector<IntegerGrid>& grids,
                                const std::vector<float>& amax, Parameter& scale) const {
  const StraightThrough estimator = context.recipe().quantisation->estimator;
  Tensor by_x = zeros(x.shape, by_value.format);
  Values by_scale(learns() ? x.values.size() : 0);
  const std::int64_t width = x.size() / std::ssize(grids);
  context.for_ranges(x.size(), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const auto group = static_cast<std::size_t>(i / width);
      const FakeQuantisationGradient g = gradient_of(estimator, grids[group], x[i], amax[group]);
      by_x[i] = by_value[i] * g.x;
      if (learns()) by_scale[static_cast<std::size_t>(i)] = by_value[i] * g.scale;
    }
  });
  if (!learns()) return by_x;
  scale.gradient = zeros(scale.value.shape);
  for (std::int64_t group = 0; group < std::ssize(grids); ++group) {
    const float* const first = by_scale.data() + group * width;
    scale.gradient[group] = run_sum(width, [&](std::int64_t i) { return first[i]; }) *
                            learned_step_factor(static_cast<std::size_t>(width),
                                                grids[static_cast<std::size_t>(group)]);
  }
  return by_x;
}

Tensor LayerQuantiser::input_gradient(const Context& context, Tensor by_value) {
  if (!context.recipe().quantisation) return by_value;
  return gradient(context, by_value, x_, {grids_.input}, input_amax_, input_scale_);
}

Tensor LayerQuantiser::weights_gradient(const Context& context, Tensor by_value) {
  if (!context.recipe().quantisation) return by_value;
  return gradient(context, by_value, w_, grids_.weights, weight_amax_, weight_scale_);
}

}  // namespace guardbit::experiments::training
