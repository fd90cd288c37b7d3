#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "formats/random.hpp"

namespace guardbit::formats::kernels {

/// The two key words of every round, each in the low half of a 64-bit word.
using PhiloxKeys = std::array<std::array<std::uint64_t, 2>, philox_rounds>;

constexpr PhiloxKeys philox_keys(std::uint64_t seed) {
  PhiloxKeys keys{};
  auto key0 = static_cast<std::uint32_t>(seed);
  auto key1 = static_cast<std::uint32_t>(seed >> 32);
  for (auto& key : keys) {
    key = {key0, key1};
    key0 += philox_key_steps[0];
    key1 += philox_key_steps[1];
  }
  return keys;
}

}  // namespace guardbit::formats::kernels
