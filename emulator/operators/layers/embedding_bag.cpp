#include "emulator/operators/layers/embedding_bag.hpp"

#include <cmath>
#include <numeric>
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

/// Which rows each bag takes: `bounds` of its places among the `rows`.
struct RowsOfBags {
  Places bounds, rows;
  std::int64_t padding;

  RowsOfBags(const Tensor& table, const Bags& bags)
      : bounds(bounds_of(bags)),
        rows(places_of(bags.indices, table.shape[0])),
        padding(bags.padding) {}
  std::size_t count() const { return bounds.size() - 1; }
  /// Calls `take` with the places of the bag's rows, without padding.
  template <class Take>
  void of(std::size_t bag, const Take& take) const {
    for (auto i = static_cast<std::size_t>(bounds[bag]);
         i < static_cast<std::size_t>(bounds[bag + 1]); ++i) {
      if (rows[i] != padding) take(i);
    }
  }
};

template <class View>
Tensor sums_of_bags(const Tensor& table, const Bags& bags, const std::vector<float>& weights) {
  const View numbers(table);
  using Number = std::decay_t<decltype(numbers[0])>;
  const auto width = static_cast<std::size_t>(table.shape[1]);
  const RowsOfBags rows(table, bags);
  require(weights.empty() || weights.size() == rows.rows.size());
  std::vector<Number> results(rows.count() * width);
  for (std::size_t bag = 0; bag < rows.count(); ++bag) {
    Number* const sum = results.data() + bag * width;
    Number taken = 0;
    rows.of(bag, [&](std::size_t i) {
      taken += 1;
      for (std::size_t c = 0; c < width; ++c) {
        const Number x = numbers[static_cast<std::size_t>(rows.rows[i]) * width + c];
        sum[c] = weights.empty() ? sum[c] + x : std::fma(x, Number{weights[i]}, sum[c]);
      }
    });
    for (std::size_t c = 0; bags.is_mean && taken > 0 && c < width; ++c) sum[c] /= taken;
  }
  return tensor_of_numbers(table.type, {static_cast<std::int64_t>(rows.count()), table.shape[1]},
                           results);
}

template <class View>
GreatestOfBags greatest_in(const Tensor& table, const Bags& bags) {
  const View numbers(table);
  using Number = std::decay_t<decltype(numbers[0])>;
  const auto width = static_cast<std::size_t>(table.shape[1]);
  const RowsOfBags rows(table, bags);
  std::vector<Number> results(rows.count() * width);
  Places found(results.size(), -1);
  for (std::size_t bag = 0; bag < rows.count(); ++bag) {
    bool is_first = true;
    rows.of(bag, [&](std::size_t i) {
      for (std::size_t c = 0; c < width; ++c) {
        const Number x = numbers[static_cast<std::size_t>(rows.rows[i]) * width + c];
        const std::size_t to = bag * width + c;
        if (!is_first && !(x > results[to])) continue;
        results[to] = x;
        found[to] = rows.rows[i];
      }
      is_first = false;
    });
  }
  const Dimensions shape = {static_cast<std::int64_t>(rows.count()), table.shape[1]};
  return {tensor_of_numbers(table.type, shape, results),
          tensor_of_integers(bags.indices.type, shape, found)};
}

}  // namespace

Tensor embedding_bag(const Tensor& table, const Bags& bags) {
  require(table.rank() == 2 && table.shape[1] > 0);
  if (table.type == formats::fp64) {
    if (bags.weights != nullptr) throw UnknownShape{"weights of FP64"};
    return sums_of_bags<DoubleView>(table, bags, {});
  }
  return sums_of_bags<NumberView>(table, bags, numbers_or_none(bags.weights));
}

GreatestOfBags greatest_of_bags(const Tensor& table, const Bags& bags) {
  require(table.rank() == 2 && table.shape[1] > 0);
  return table.type == formats::fp64 ? greatest_in<DoubleView>(table, bags)
                                     : greatest_in<NumberView>(table, bags);
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

Tensor embedding_gradient_by_frequency(const Tensor& gradient, const Tensor& indices,
                                       std::int64_t rows, std::int64_t padding) {
  const std::int64_t width = gradient.shape.back(), count = indices.count();
  const Places places = places_of(indices, rows);
  require(count * width == gradient.count());
  std::vector<float> counts(static_cast<std::size_t>(rows)), factors;
  for (const std::int64_t place : places) ++counts[static_cast<std::size_t>(place)];
  for (const std::int64_t place : places)
    factors.push_back(1.0F / counts[static_cast<std::size_t>(place)]);
  // Each index is a bag of its own.
  Tensor table = gradient;
  table.shape = {count, width};
  table.stride = contiguous_stride(table.shape);
  Places bags(places.size());
  std::iota(bags.begin(), bags.end(), 0);
  const Tensor weights = tensor_of_numbers(formats::fp32, {count}, factors);
  return embedding_bag_gradient(table, indices, tensor_of_integers(formats::int64, {count}, bags),
                                weights, rows, false, &weights, padding);
}

}  // namespace guardbit::emulator::operators
