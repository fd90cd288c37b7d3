#include "emulator/operators/layers/weight_norm.hpp"

#include <cmath>
#include <vector>

#include "emulator/operators/number_view.hpp"
#include "emulator/operators/trees.hpp"

namespace guardbit::emulator::operators {
namespace {

/// Threads that share a slice.
constexpr std::size_t threads_of_rows = 256, threads_of_columns = 64;

/// Slices of the first dimension lie together, those of the last are columns.
struct Slices {
  std::size_t count, length, step, stride, threads;

  Slices(const Tensor& v, const Tensor& g, std::int64_t dimension) {
    const auto d = dimension_of(v, dimension);
    if (v.shape.empty() || (d != 0 && d + 1 != v.shape.size()))
      throw UnknownShape{"a dimension that is neither the first nor the last"};
    count = static_cast<std::size_t>(v.shape[d]);
    if (g.count() != v.shape[d]) throw UnknownShape{"lengths for another number of slices"};
    length = count == 0 ? 0 : static_cast<std::size_t>(v.count()) / count;
    const bool is_first = d == 0;
    step = is_first ? 1 : count;
    stride = is_first ? length : 1;
    threads = is_first ? threads_of_rows : threads_of_columns;
  }
  std::size_t place(std::size_t slice, std::size_t i) const { return slice * stride + i * step; }

  float sum_of_products(const NumberView& a, const NumberView& b, std::size_t slice) const {
    std::vector<float> sums(threads);
    for (std::size_t i = 0; i < length; ++i) {
      const std::size_t at = place(slice, i);
      sums[i % threads] = std::fma(a[at], b[at], sums[i % threads]);
    }
    return halved_sum(sums);
  }
};

}  // namespace

WeightNorm weight_norm(const Tensor& v, const Tensor& g, std::int64_t dimension) {
  const Slices slices(v, g, dimension);
  const NumberView vs(v), gs(g);
  std::vector<float> weights(vs.size()), norms(slices.count);
  for (std::size_t s = 0; s < slices.count; ++s) {
    norms[s] = std::sqrt(slices.sum_of_products(vs, vs, s));
    const float reciprocal = 1.0F / norms[s];
    for (std::size_t i = 0; i < slices.length; ++i)
      weights[slices.place(s, i)] = (gs[s] * vs[slices.place(s, i)]) * reciprocal;
  }
  return {tensor_of_numbers(v.type, v.shape, weights),
          tensor_of_numbers(formats::fp32, g.shape, norms)};
}

WeightNormGradients weight_norm_gradients(const Tensor& gradient, const Tensor& v, const Tensor& g,
                                          const Tensor& norms, std::int64_t dimension) {
  const Slices slices(v, g, dimension);
  if (gradient.shape != v.shape || norms.count() != g.count())
    throw UnknownShape{"gradients or norms of another shape"};
  const NumberView gradients(gradient), vs(v), gs(g), lengths(norms);
  std::vector<float> of_v(vs.size()), of_g(slices.count);
  for (std::size_t s = 0; s < slices.count; ++s) {
    const float sum = slices.sum_of_products(gradients, vs, s);
    const float reciprocal = 1.0F / lengths[s];
    const float cubed = (reciprocal * reciprocal) * reciprocal;
    of_g[s] = sum * reciprocal;
    for (std::size_t i = 0; i < slices.length; ++i) {
      const std::size_t at = slices.place(s, i);
      of_v[at] = gs[s] * std::fma(reciprocal, gradients[at], -((cubed * vs[at]) * sum));
    }
  }
  return {tensor_of_numbers(v.type, v.shape, of_v), tensor_of_numbers(g.type, g.shape, of_g)};
}

}  // namespace guardbit::emulator::operators
