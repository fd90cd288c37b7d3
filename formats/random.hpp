#pragma once

#include <array>
#include <cstdint>

#include "formats/rounding.hpp"

namespace guardbit::formats {

inline constexpr int philox_rounds = 10;
inline constexpr std::array<std::uint32_t, 2> philox_multipliers = {0xD2511F53U, 0xCD9E8D57U};
inline constexpr std::array<std::uint32_t, 2> philox_key_steps = {0x9E3779B9U, 0xBB67AE85U};

/// Philox4x32-10, the counter-based generator of Salmon, Moraes, Dror and Shaw ("Parallel random
/// numbers: as easy as 1, 2, 3", SC'11): a bijection of the counter under the key, so element i's
/// bits depend on the seed and i alone, not on who computes it or when.
constexpr std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter,
                                                  std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < philox_rounds; ++round) {
    const std::uint64_t product0 = std::uint64_t{philox_multipliers[0]} * counter[0];
    const std::uint64_t product1 = std::uint64_t{philox_multipliers[1]} * counter[2];
    counter = {static_cast<std::uint32_t>(product1 >> 32) ^ counter[1] ^ key[0],
               static_cast<std::uint32_t>(product1),
               static_cast<std::uint32_t>(product0 >> 32) ^ counter[3] ^ key[1],
               static_cast<std::uint32_t>(product0)};
    key = {key[0] + philox_key_steps[0], key[1] + philox_key_steps[1]};
  }
  return counter;
}

inline constexpr int most_random_bits = 32;

/// The random bits of element `index`, for Rounding::stochastic: the top `count` bits (at most 32)
/// of its own word of the stream that `seed` selects; four elements share a block.
constexpr RandomBits random_bits(std::uint64_t seed, std::uint64_t index,
                                 int count = most_random_bits) {
  const std::uint64_t block = index / 4;
  const auto words =
      philox4x32({static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32), 0, 0},
                 {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)});
  return {std::uint64_t{words[index % 4]} >> (most_random_bits - count), count};
}

}  // namespace guardbit::formats
