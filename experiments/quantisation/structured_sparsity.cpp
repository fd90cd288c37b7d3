#include "experiments/quantisation/structured_sparsity.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>

#include "formats/support/error.hpp"

namespace guardbit::experiments {

namespace {

constexpr std::size_t group_size = 4;

/// Places of the four magnitudes, the largest first; of equal ones the lower place.
std::array<std::size_t, group_size> order_of(const std::array<float, group_size>& magnitudes) {
  std::array<std::size_t, group_size> order = {0, 1, 2, 3};
  // By insertion, which keeps equal ones in their order.
  for (std::size_t i = 1; i < group_size; ++i)
    for (std::size_t j = i; j > 0 && magnitudes[order[j]] > magnitudes[order[j - 1]]; --j)
      std::swap(order[j], order[j - 1]);
  return order;
}

}  // namespace

PruningAxis input_axis(std::span<const std::int64_t> shape, std::string_view where) {
  if (shape.size() != 2 && shape.size() != 4)
    throw formats::Error(
        std::string(where),
        "2:4 pruning takes a matrix [out, in] or a convolution's weights [out, in, rows, columns]");
  PruningAxis axis{static_cast<std::size_t>(shape[1]), 1};
  if (shape.size() == 4)
    axis.stride = static_cast<std::size_t>(shape[2]) * static_cast<std::size_t>(shape[3]);
  if (axis.length % group_size != 0)
    throw formats::Error(std::string(where),
                         "its " + std::to_string(axis.length) + " inputs are not a multiple of 4");
  return axis;
}

bool is_pruned_by_modelopt(std::span<const std::int64_t> shape) {
  return shape.size() >= 2 && shape[0] % 8 == 0 && shape[1] % 16 == 0;
}

PruningSummary prune(std::span<float> weights, const PruningAxis& axis, std::string_view where) {
  PruningSummary summary;
  if (weights.empty()) return summary;
  const std::size_t plane = axis.length * axis.stride;
  for (std::size_t begin = 0; begin < weights.size(); begin += plane) {
    for (std::size_t group = 0; group < axis.length / group_size; ++group) {
      for (std::size_t offset = 0; offset < axis.stride; ++offset) {
        const std::size_t first = begin + group * group_size * axis.stride + offset;
        std::array<float, group_size> m{};
        for (std::size_t i = 0; i < group_size; ++i) {
          m[i] = std::fabs(weights[first + i * axis.stride]);
          if (!std::isfinite(m[i]))
            throw formats::Error(std::string(where), "holds an infinity or a NaN");
          summary.all += static_cast<double>(m[i]);
          summary.all_squares += static_cast<double>(m[i]) * static_cast<double>(m[i]);
        }
        const auto order = order_of(m);
        for (std::size_t rank = 0; rank < group_size; ++rank) {
          const float x = m[order[rank]];
          if (rank < 2) {
            summary.kept += static_cast<double>(x);
            summary.kept_squares += static_cast<double>(x) * static_cast<double>(x);
          } else {
            weights[first + order[rank] * axis.stride] = 0;
          }
        }
        ++summary.groups;
        const float best = m[order[0]] + m[order[1]], next = m[order[0]] + m[order[2]];
        if (m[order[1]] == m[order[2]]) {
          ++summary.ties;
        } else if (best == next) {
          ++summary.rounded_ties;
        }
      }
    }
  }
  return summary;
}

StoredPair stored_pair(std::span<const float, 4> group) {
  std::array<float, group_size> m{};
  for (std::size_t i = 0; i < group_size; ++i) m[i] = std::fabs(group[i]);
  const auto order = order_of(m);
  const std::size_t low = std::min(order[0], order[1]), high = std::max(order[0], order[1]);
  return {group[low], group[high], static_cast<std::uint8_t>(low | high << 2U)};
}

}  // namespace guardbit::experiments
