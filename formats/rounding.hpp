#pragma once

#include <array>
#include <cstdint>

#include "formats/format.hpp"
#include "formats/value.hpp"

namespace guardbit::formats {

enum class Rounding : std::uint8_t {
  nearest_even,
  nearest_away,
  toward_zero,
  upward,
  downward,
  to_odd,
  /// RandomBits are added to the discarded fraction; the carry decides
  stochastic,
};
constexpr auto words(Rounding) {
  return std::array{"nearest_even", "nearest_away", "toward_zero", "upward",
                    "downward",     "to_odd",       "stochastic"};
}

/// Input of stochastic rounding: an integer of `count` bits. The discarded fraction, truncated to
/// `count` bits, plus `bits` carries into the result or not; `bits` = 0 is truncation. This is the
/// rule of the device's `cvt.rs`.
struct RandomBits {
  std::uint64_t bits = 0;
  int count = 0;
};

template <class Word>
inline constexpr int word_width = static_cast<int>(8 * sizeof(Word));

/// What a right shift loses, in units of the last kept bit.
enum class Lost : std::uint8_t { nothing, less_than_half, half, more_than_half };

/// What `significand >> shift` loses, given that `sticky` says something nonzero lies below the
/// significand already.
template <class Word>
constexpr Lost lost_by_shift(Word significand, int shift, bool sticky) {
  if (shift <= 0) return sticky ? Lost::less_than_half : Lost::nothing;
  if (shift > word_width<Word>)
    return significand != 0 || sticky ? Lost::less_than_half : Lost::nothing;
  const Word half = Word{1} << (shift - 1);
  const Word rest = significand & (half | (half - 1));
  if (rest == half) return sticky ? Lost::more_than_half : Lost::half;
  if (rest > half) return Lost::more_than_half;
  return rest != 0 || sticky ? Lost::less_than_half : Lost::nothing;
}

/// Do the discarded bits plus the random bits carry?
constexpr bool random_carry(uint128 significand, int shift, RandomBits random) {
  if (random.count <= 0 || shift <= 0) return false;
  // The top `count` bits of the discarded fraction as an integer; a shift past the word leaves
  // leading zeros.
  const uint128 discarded = shift >= 128 ? significand : significand & ((uint128{1} << shift) - 1);
  const int down = shift - random.count;
  const uint128 top = down >= 128 ? 0 : down >= 0 ? discarded >> down : discarded << -down;
  return ((top + (random.bits & low_bits(random.count))) >> random.count) != 0;
}

template <class Word>
struct Rounded {
  Word significand = 0;
  bool inexact = false;
};

/// The one rounding primitive: (significand + tail) / 2^shift to an integer, on the magnitude of a
/// number of the given sign. A negative shift multiplies and is exact; it may not meet a sticky
/// tail, and the product must fit the word (uint128, or uint64 where that is wide enough).
template <class Word>
constexpr Rounded<Word> shift_right_and_round(Word significand, int shift, bool sticky,
                                              bool negative, Rounding rounding,
                                              RandomBits random = {}) {
  const Lost lost = lost_by_shift(significand, shift, sticky);
  const Word kept = shift >= word_width<Word> ? 0
                    : shift >= 0              ? significand >> shift
                                              : significand << -shift;
  if (lost == Lost::nothing) return {kept, false};
  const bool odd = (kept & 1) != 0;
  bool up = false;
  switch (rounding) {
    case Rounding::nearest_even:
      up = lost == Lost::more_than_half || (lost == Lost::half && odd);
      break;
    case Rounding::nearest_away: up = lost >= Lost::half; break;
    case Rounding::toward_zero: break;
    case Rounding::upward: up = !negative; break;
    case Rounding::downward: up = negative; break;
    case Rounding::to_odd: up = !odd; break;
    case Rounding::stochastic: up = random_carry(significand, shift, random); break;
  }
  return {kept + (up ? 1 : 0), true};
}

/// What becomes of a number the destination cannot hold: an argument of a conversion, never part of
/// a format.
struct Overflow {
  enum class Finite : std::uint8_t {
    /// IEEE 754-2019 7.4: infinity (NaN where there is none), unless the rounding stops
    /// at the maximum
    infinity,
    /// infinity whatever the rounding: matrix units truncate, yet overflow
    /// (NUMERICS 1.4)
    infinity_always,
    /// the largest finite number
    saturate,
    /// integers only: modulo 2^bits
    wrap,
  };
  enum class Infinity : std::uint8_t {
    keep,
    /// keep: NaN where the format has no infinity
    saturate
  };
  enum class Nan : std::uint8_t {
    /// quieted; sign and leading payload bits kept (IEEE 754-2019 6.2.3, x86)
    payload,
    /// the quiet bit alone, sign kept
    quiet_signed,
    /// the quiet bit alone, positive
    quiet,
    /// all magnitude bits, sign kept
    all_ones_signed,
    /// all magnitude bits, positive (NVIDIA's canonical NaN)
    all_ones,
    /// all magnitude bits, positive for a NaN, signed for a number that
    /// overflowed (cuda_fp8.h)
    all_ones_of_nan,
    /// fraction cut, not quieted, sign kept; infinity where the cut leaves none
    /// (cvt.rna.tf32)
    cut,
    /// cut, then the next lower magnitude code (cvt.rna.satfinite.tf32)
    cut_then_below,
  };
  /// The answer where the format has no NaN.
  enum class NoNan : std::uint8_t { maximum, zero, negative_zero, minimum, opposite_zero };
  /// What a format without a sign makes of numbers below zero: the smallest code when saturating
  /// and NaN otherwise, or the code of their magnitude.
  enum class Negative : std::uint8_t { out_of_range, magnitude };
  /// What a format without a zero makes of zero.
  enum class NoZero : std::uint8_t { smallest, nan };
  /// What a power-of-two format makes, rounding to nearest, of numbers between its two smallest:
  /// the nearer one, or the upper one (converters that see FP32's subnormals as fractions of
  /// 2^-126).
  enum class LowestGap : std::uint8_t { nearest, upward };

  Finite finite = Finite::infinity;
  Infinity infinity = Infinity::keep;
  Nan nan = Nan::payload;
  NoNan no_nan = NoNan::maximum;
  Negative negative = Negative::out_of_range;
  NoZero no_zero = NoZero::smallest;
  LowestGap lowest_gap = LowestGap::nearest;

  friend constexpr bool operator==(const Overflow&, const Overflow&) = default;
};

inline constexpr Overflow overflow_ieee = {};
inline constexpr Overflow overflow_saturate = {Overflow::Finite::saturate,
                                               Overflow::Infinity::saturate, Overflow::Nan::payload,
                                               Overflow::NoNan::maximum};

/// Does IEEE 754 overflow under this rounding stop at the largest finite number?
constexpr bool overflow_stops_at_max(Rounding rounding, bool negative) {
  return rounding == Rounding::toward_zero || rounding == Rounding::to_odd ||
         (rounding == Rounding::upward && negative) ||
         (rounding == Rounding::downward && !negative);
}

}  // namespace guardbit::formats
