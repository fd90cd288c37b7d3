#pragma once

#include <cstdint>

namespace guardbit::formats {

/// x / by, to the next whole number; neither is negative.
constexpr std::int64_t divided_up(std::int64_t x, std::int64_t by) { return (x + by - 1) / by; }

/// The first multiple that is not below x.
constexpr std::int64_t rounded_up(std::int64_t x, std::int64_t multiple) {
  return divided_up(x, multiple) * multiple;
}

}  // namespace guardbit::formats
