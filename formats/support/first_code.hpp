#pragma once

#include <cstdint>

namespace guardbit::formats {

inline constexpr std::uint32_t fp32_infinity = 0x7F800000;

/// The least of 0 to `end` for which a predicate holds that, once it does, holds for all above;
/// `end` if for none below.
template <class Code, class Predicate>
constexpr Code first_of(Code end, const Predicate& holds) {
  Code low = 0;
  while (low < end) {
    const Code middle = low + (end - low) / 2;
    if (holds(middle)) {
      end = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

/// The same of the FP32 codes up to infinity's.
template <class Predicate>
constexpr std::uint32_t first_word(const Predicate& holds) {
  return first_of(fp32_infinity, holds);
}

}  // namespace guardbit::formats
