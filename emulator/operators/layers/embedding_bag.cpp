#include "emulator/operators/layers/embedding_bag.hpp"

#include <cmath>
#include <vector>

#include "emulator/operators/number_view.hpp"

namespace guardbit::emulator::operators {
namespace {

using Places = std::vector<std::int64_t>;

void require(bool fits) {
  if (!fits) throw UnknownShape{"bags that do not fit their indices"};
}

/// Where bags begin and the last one ends.
Places bounds_of(const Bags& bags) {
  const std::int64_t count = bags.indices.count();
  Places bounds = places_of(bags.offsets, count + 1);
  if (!bags.has_last_offset) bounds.push_back(count);
  require(!bounds.empty() && bounds.front() == 0 && bounds.back() == count);
  for (std::size_t i = 1; i < bounds.size(); ++i) require(bounds[i - 1] <= bounds[i]);
  return bounds;
}

}  // namespace

Tensor embedding_bag(const Tensor& table, const Bags& bags) {
  require(table.rank() == 2 && table.shape[1] > 0);
  const auto width = static_cast<std::size_t>(table.shape[1]);
  const Places bounds = bounds_of(bags);
  const Places indices = places_of(bags.indices, table.shape[0]);
  const NumberView rows(table);
  std::vector<float> weights;
  if (bags.weights != nullptr) weights = numbers_of(*bags.weights);
  require(weights.empty() || weights.size() == indices.size());
  const std::size_t count = bounds.size() - 1;
  std::vector<float> results(count * width);
  for (std::size_t bag = 0; bag < count; ++bag) {
    float* const sum = results.data() + bag * width;
    float taken = 0;
    for (auto i = static_cast<std::size_t>(bounds[bag]);
         i < static_cast<std::size_t>(bounds[bag + 1]); ++i) {
      if (indices[i] == bags.padding) continue;
      taken += 1;
      for (std::size_t c = 0; c < width; ++c) {
        const float x = rows[static_cast<std::size_t>(indices[i]) * width + c];
        sum[c] = weights.empty() ? sum[c] + x : std::fma(x, weights[i], sum[c]);
      }
    }
    for (std::size_t c = 0; bags.is_mean && taken > 0 && c < width; ++c) sum[c] /= taken;
  }
  return tensor_of_numbers(table.type, {static_cast<std::int64_t>(count), table.shape[1]}, results);
}

Tensor bags_of_indices(const Bags& bags) {
  const Places bounds = bounds_of(bags);
  Places found;
  for (std::size_t bag = 0; bag + 1 < bounds.size(); ++bag)
    found.insert(found.end(), static_cast<std::size_t>(bounds[bag + 1] - bounds[bag]),
                 static_cast<std::int64_t>(bag));
  return tensor_of_integers(bags.indices.type, {bags.indices.count()}, found);
}

Tensor sizes_of_bags(const Bags& bags) {
  const Places bounds = bounds_of(bags), indices = integers_of(bags.indices);
  Places sizes(bounds.size() - 1);
  for (std::size_t bag = 0; bag < sizes.size(); ++bag) {
    for (std::int64_t i = bounds[bag]; i < bounds[bag + 1]; ++i)
      sizes[bag] += indices[static_cast<std::size_t>(i)] == bags.padding ? 0 : 1;
  }
  return tensor_of_integers(bags.indices.type, {static_cast<std::int64_t>(sizes.size())}, sizes);
}

Tensor embedding_bag_gradient(const Tensor& gradient, const Tensor& indices, const Tensor& bag_of,
                              const Tensor& sizes, std::int64_t rows, bool is_mean,
                              const Tensor* weights, std::int64_t padding) {
  constexpr std::size_t piece = 10;
  require(gradient.rank() == 2 && rows >= 0 && indices.count() == bag_of.count() &&
          sizes.count() == gradient.shape[0]);
  const auto width = static_cast<std::size_t>(gradient.shape[1]);
  const Places places = places_of(indices, rows), bag = places_of(bag_of, gradient.shape[0]);
  const std::vector<float> counts = numbers_of(sizes);
  const NumberView gradients(gradient);
  std::vector<float> factors(places.size(), 1.0F);
  if (weights != nullptr) factors = numbers_of(*weights);
  require(factors.size() == places.size());
  std::vector<std::vector<std::size_t>> uses(static_cast<std::size_t>(rows));
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (places[i] != padding) uses[static_cast<std::size_t>(places[i])].push_back(i);
  }
  std::vector<float> results(uses.size() * width);
  for (std::size_t row = 0; row < uses.size(); ++row) {
    for (std::size_t c = 0; c < width; ++c) {
      float all = 0, part = 0;
      for (std::size_t k = 0; k < uses[row].size(); ++k) {
        const std::size_t i = uses[row][k], b = static_cast<std::size_t>(bag[i]);
        float g = gradients[b * width + c];
        if (is_mean) g /= counts[b];
        part = std::fma(g, factors[i], part);
        if ((k + 1) % piece != 0 && k + 1 != uses[row].size()) continue;
        all += part;
        part = 0;
      }
      results[row * width + c] = all;
    }
  }
  return tensor_of_numbers(gradient.type, {rows, gradient.shape[1]}, results);
}

}  // namespace guardbit::emulator::operators
