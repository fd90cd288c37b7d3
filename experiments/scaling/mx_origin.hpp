#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "experiments/scaling/block_scales.hpp"
#include "formats/format.hpp"
#include "formats/support/words.hpp"

namespace guardbit::experiments {

inline constexpr auto mx_modes = formats::enumerators_of<MxMode>;
inline constexpr std::size_t mx_block = 32;

/// MX data: codes of `element`, one in each byte, in rows of `columns`; E8M0 codes for every 32 of
/// a row, the last block of a row may be shorter.
struct MxData {
  formats::Format element;
  std::size_t columns = 0;
  std::span<const std::uint8_t> elements, scales;

  std::size_t blocks_per_row() const { return (columns + mx_block - 1) / mx_block; }
};

/// Do the numbers of elements and scales belong together?
bool is_consistent(const MxData& data);

/// Blocks that a mode cannot have written.
struct MxContradictions {
  std::uint64_t count = 0;
  /// of all blocks
  std::optional<std::uint64_t> first;
};

struct MxOrigin {
  std::uint64_t blocks = 0;
  /// blocks that can contradict a mode
  std::uint64_t telling = 0;
  /// in their order
  std::array<MxContradictions, mx_modes.size()> modes;
  /// Were it rceil, the chance that no block's largest element lies below the range of floor; 1 if
  /// there is such a block.
  double chance_of_rceil = 1;
  /// With the source: elements that are not x over the block's scale, rounded to nearest with ties
  /// to even or away from zero, saturating.
  std::optional<std::uint64_t> not_nearest_even, not_nearest_away;
};

/// From the scales and the largest element of each block alone. Let P be the largest power of two
/// of the element format and m its largest number; of scales that E8M0 does not clamp the largest
/// element of a block is, after rounding,
///   floor: in [P, m]    amax/2^floor(log2 amax) in [1, 2), times P, saturated
///   even:  in [P, m]    at most half an ulp below P where the exponent was rounded up: rounds to P
///   ceil:  in [P/2, P]  amax/2^ceil(log2 amax) in (1/2, 1], times P
///   rceil: in [m/2, m]  amax/scale <= m, and more than m/2 or half the scale had done
/// so that floor and even cannot be told apart this way.
MxOrigin mx_origin(const MxData& data);

/// With the numbers that were quantised: scales are compared with those that each mode chooses.
MxOrigin mx_origin(const MxData& data, std::span<const float> source);

}  // namespace guardbit::experiments
