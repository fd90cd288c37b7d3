#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>

namespace guardbit::emulator::atlas {

/// A value's place in a sorted list, or the places of its two neighbours.
struct Between {
  std::size_t low = 0, high = 0;

  bool is_listed() const { return low == high; }
  bool has(std::size_t place) const { return low <= place && place <= high; }
  /// So many places more to both sides, in a list of that size.
  Between wider(std::size_t steps, std::size_t size) const {
    return {low - std::min(low, steps), std::min(high + steps, size - 1)};
  }
};

/// Nothing: the value lies outside the list, of which `value_of` tells the values.
template <class List, class ValueOf = std::identity>
std::optional<Between> between(const List& list, std::int64_t value, const ValueOf& value_of = {}) {
  const auto at = std::ranges::lower_bound(list, value, {}, value_of);
  if (at == list.end()) return std::nullopt;
  const auto place = static_cast<std::size_t>(at - list.begin());
  if (std::invoke(value_of, *at) == value) return Between{place, place};
  if (place == 0) return std::nullopt;
  return Between{place - 1, place};
}

}  // namespace guardbit::emulator::atlas
