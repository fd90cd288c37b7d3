#pragma once

#include <cstdint>

namespace guardbit::formats {

inline constexpr std::uint32_t fp32_infinity = 0x7F800000;

/// The least FP32 code from 0 to infinity's for which a predicate holds that, once it does, holds
/// for all above; infinity's code if for none below.
template <class Predicate>
constexpr std::uint32_t first_word(const Predicate& holds) {
  std::uint32_t low = 0;
  std::uint32_t high = fp32_infinity;
  while (low < high) {
    const std::uint32_t middle = low + (high - low) / 2;
    if (holds(middle)) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

}  // namespace guardbit::formats
