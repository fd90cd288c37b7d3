#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace guardbit::experiments {

/// Elements that are looked at together.
inline constexpr std::size_t block_length = 1024;
inline constexpr std::size_t ranks = 8;
inline constexpr std::size_t slots = 256 * ranks;

/// FP32 fractions that cut a binade, ascending; ~0 for none.
using FractionCuts = std::array<std::uint32_t, ranks - 1>;

/// What an element adds to its slot: one, counted from bit `count_shift` on, plus the significand;
/// and the significand's square. Two numbers that one instruction adds.
using SlotTerm [[gnu::vector_size(16)]] = std::uint64_t;
inline constexpr int count_shift = 40;

/// A block of FP32 words: their magnitudes and the slots these fall into, exponent * ranks + how
/// many cuts the fraction reaches.
struct MagnitudeBlock {
  alignas(64) std::array<std::uint32_t, block_length> magnitudes;
  alignas(64) std::array<std::uint32_t, block_length> slots;
  /// of each element
  alignas(64) std::array<SlotTerm, block_length> terms;
  std::uint32_t largest;
  /// of numbers other than zero
  std::uint32_t least_less_one;
  bool has_subnormal, has_nonfinite;
};

/// Numbers by biased exponent, zeros at 0. Each lane holds a part of the counts.
inline constexpr std::size_t lanes_of_counts = 8;
struct ExponentCounts {
  std::array<std::array<std::uint32_t, 256>, lanes_of_counts> lanes = {};
  std::uint32_t largest = 0;
  /// of numbers other than zero
  std::uint32_t least_less_one = ~std::uint32_t{0};
};

/// What is done to blocks, compiled for one instruction set. Words may lie at any address.
struct BlockFunctions {
  using Fill = void(MagnitudeBlock&, const std::byte* words, const FractionCuts&);
  using Count = bool(ExponentCounts&, const std::byte* words);

  std::string_view instruction_set;
  /// by the number of cuts
  std::array<Fill*, ranks> fill;
  /// Counts a block: at most 2^32 elements before a lane is full. A block with a subnormal number,
  /// an infinity or a NaN is not counted, and false.
  Count* count;
};

/// Those that this CPU runs, the widest vectors first, the portable ones last.
std::span<const BlockFunctions> block_functions();

std::size_t number_of_cuts(const FractionCuts& cuts);

}  // namespace guardbit::experiments
