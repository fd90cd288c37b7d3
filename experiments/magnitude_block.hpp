#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace guardbit::experiments {

/// Elements that are looked at together.
inline constexpr std::size_t block_length = 1024;
inline constexpr std::size_t ranks = 8;
inline constexpr std::size_t slots = 256 * ranks;

/// FP32 fractions that cut a binade, ascending; ~0 for none.
using FractionCuts = std::array<std::uint32_t, ranks - 1>;

/// A block of FP32 words: their magnitudes and the slots these fall into, exponent * ranks + how
/// many cuts the fraction reaches.
struct MagnitudeBlock {
  alignas(64) std::array<std::uint32_t, block_length> magnitudes;
  alignas(64) std::array<std::uint32_t, block_length> slots;
  std::uint32_t largest;
  std::uint32_t least_less_one;  ///< of numbers other than zero
  bool has_subnormal, has_nonfinite;
};

/// Fills a whole block from words at any address.
void fill_block(MagnitudeBlock& block, const std::byte* words, const FractionCuts& cuts);

}  // namespace guardbit::experiments
