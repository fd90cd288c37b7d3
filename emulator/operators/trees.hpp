#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>

// The orders in which the threads of a block bring their values together.
namespace guardbit::emulator::operators {

inline constexpr std::size_t warp_lanes = 32;

/// v[t] . v[t + n/2], then v[t] . v[t + n/4], ... of a power of two of values: shuffles downward,
/// butterflies with descending distances (of an operation whose operands may be swapped), trees in
/// shared memory. The values are used up.
template <class Value, class Combine>
Value halved(std::span<Value> values, const Combine& combine) {
  for (std::size_t distance = values.size() / 2; distance > 0; distance /= 2) {
    for (std::size_t t = 0; t < distance; ++t) values[t] = combine(values[t], values[t + distance]);
  }
  return values[0];
}

/// v[2t] . v[2t + 1], then the same of what came out: ascending distances.
template <class Value, class Combine>
Value paired(std::span<Value> values, const Combine& combine) {
  for (std::size_t count = values.size() / 2; count > 0; count /= 2) {
    for (std::size_t t = 0; t < count; ++t) values[t] = combine(values[2 * t], values[2 * t + 1]);
  }
  return values[0];
}

/// Each warp by shuffles downward, then the warps' values in a table of 32 in the same way; places
/// of the table that no warp has hold `absent`.
template <class Value, class Combine>
Value two_stages(std::span<Value> values, const Value& absent, const Combine& combine) {
  std::array<Value, warp_lanes> table;
  table.fill(absent);
  for (std::size_t warp = 0; warp * warp_lanes < values.size(); ++warp)
    table[warp] = halved(values.subspan(warp * warp_lanes, warp_lanes), combine);
  return halved(std::span<Value>(table), combine);
}

/// The same with a warp of one value's width only.
inline float sum_of_two_stages(std::span<float> values) {
  return two_stages(values, 0.0F, [](float a, float b) { return a + b; });
}
inline double sum_of_two_stages(std::span<double> values) {
  return two_stages(values, 0.0, [](double a, double b) { return a + b; });
}
inline float halved_sum(std::span<float> values) {
  return halved(values, [](float a, float b) { return a + b; });
}
inline double halved_sum(std::span<double> values) {
  return halved(values, [](double a, double b) { return a + b; });
}

}  // namespace guardbit::emulator::operators
