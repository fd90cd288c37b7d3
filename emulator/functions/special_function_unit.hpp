#pragma once

#include <bit>
#include <cstdint>
#include <span>

#include "emulator/functions/special_function_tables.hpp"
#include "formats/arithmetic.hpp"
#include "formats/codec.hpp"
#include "formats/format_catalogue.hpp"

// The special function unit of an NVIDIA GPU (the instruction MUFU): tables, one interpolator, and
// for each function what stands around it. Inputs and results are codes of FP32. Digests of all
// 2^32 results equal the hardware's of an sm_90 (docs/FUNCTIONS.md).
namespace guardbit::emulator::mufu {

/// The square of a number of 17 bits, without the columns of its partial products that weigh less
/// than 2^lowest_column.
struct Squarer {
  int bits = 17;
  int lowest_column = 19;
};

/// In units of 2^lowest_column. Partial products are x_i 2^(2i) and, for i > j,
/// x_i x_j 2^(i+j+1).
constexpr std::int64_t square(const Squarer& squarer, std::uint32_t x) {
  std::uint64_t sum = 0;
  for (int j = 0; j < squarer.bits; ++j) {
    const int above = j + 1, kept = squarer.lowest_column - 1 - j;
    const int first = above > kept ? above : kept;
    const std::uint64_t products = std::uint64_t{x} >> first << first << (j + 1);
    const std::uint64_t own = std::uint64_t{2 * j >= squarer.lowest_column} << (2 * j);
    sum += (products | own) & (0 - std::uint64_t{x >> j & 1U});  // no branch: bits are random
  }
  return static_cast<std::int64_t>(sum >> squarer.lowest_column);
}

/// A function on one binade of its argument: a parabola in each of 2^index_bits segments.
struct Interpolator {
  std::span<const Segment> segments;
  int index_bits;
  /// added to every c0, in units of 2^-20 of the result's last place: it centres the errors of the
  /// truncated result
  std::int32_t bias;
  Squarer squarer = {};
};

/// The function at a fraction of 23 bits, in units of 2^-20 of the result's last place.
constexpr std::int64_t interpolate(const Interpolator& f, std::uint32_t fraction) {
  const int rest_bits = 23 - f.index_bits;
  const Segment& s = f.segments[fraction >> rest_bits];
  const std::uint32_t x = (fraction & ((1U << rest_bits) - 1)) << (17 - rest_bits);
  return std::int64_t{s.c0} * (1 << 18) + f.bias + std::int64_t{s.c1} * x * (1 << 3) +
         s.c2 * square(f.squarer, x) * (1 << 5);
}

inline constexpr Interpolator ex2_interpolator = {ex2_segments, 6, 195648};
inline constexpr Interpolator rcp_interpolator = {rcp_segments, 7, 64736};

inline constexpr std::uint32_t sign_bit = 0x80000000, infinity = 0x7f800000, nan = 0x7fffffff;

/// 2^x: `ex2.approx.ftz.f32`. Results below the smallest normal number are 0.
constexpr std::uint32_t ex2_ftz(std::uint32_t code, const Interpolator& f = ex2_interpolator) {
  const bool negative = (code & sign_bit) != 0;
  const std::uint32_t magnitude = code & ~sign_bit;
  if (magnitude > infinity) return nan;
  const int exponent = static_cast<int>(magnitude >> 23) - 127;
  if (exponent >= 7) return negative ? 0 : infinity;
  // |x| in 23 fraction bits, the rest cut off
  const std::uint32_t significand = (magnitude & 0x7fffff) | 0x800000;
  const std::uint32_t fixed = exponent >= 0    ? significand << exponent
                              : exponent > -24 ? significand >> -exponent
                                               : 0;
  std::uint32_t fraction = fixed & 0x7fffff;
  int whole = static_cast<int>(fixed >> 23);
  // A negative number's fraction is its ones' complement, one less than the difference.
  if (negative) {
    whole = fraction == 0 ? -whole : -whole - 1;
    if (fraction != 0) fraction ^= 0x7fffff;
  }
  if (whole < -126) return 0;
  return static_cast<std::uint32_t>(whole + 127) << 23 |
         (static_cast<std::uint32_t>(interpolate(f, fraction) >> 20) & 0x7fffff);
}

/// 1 / x: `rcp.approx.ftz.f32`. Subnormal numbers count as 0, and so do results below the smallest
/// normal number.
constexpr std::uint32_t rcp_ftz(std::uint32_t code, const Interpolator& f = rcp_interpolator) {
  const std::uint32_t sign = code & sign_bit, magnitude = code & ~sign_bit;
  if (magnitude > infinity) return nan;
  if (magnitude == infinity) return sign;
  if (magnitude < 1U << 23) return sign | infinity;
  // Units are of 2^-24: 2^24 of them are 1, which only 1 / 1 reaches.
  const auto result = static_cast<std::uint32_t>(interpolate(f, magnitude & 0x7fffff) >> 20);
  const bool is_one = result >= 1U << 24;
  const int biased = 253 - static_cast<int>(magnitude >> 23) + (is_one ? 1 : 0);
  if (biased < 1) return sign;
  return sign | static_cast<std::uint32_t>(biased) << 23 | (is_one ? 0 : result & 0x7fffff);
}

/// x * y, rounded to nearest even.
constexpr std::uint32_t product(std::uint32_t x, std::uint32_t y) {
  using formats::fp32;
  return static_cast<std::uint32_t>(
      formats::encode(fp32, formats::multiply(formats::decode(fp32, x), formats::decode(fp32, y))));
}

/// A power of two.
constexpr std::uint32_t power(int exponent) {
  return static_cast<std::uint32_t>(exponent + 127) << 23;
}

/// `ex2.approx.f32`: below -126 it is the square of 2^(x/2).
constexpr std::uint32_t ex2(std::uint32_t code, const Interpolator& f = ex2_interpolator) {
  constexpr std::uint32_t least = 0xc2fc0000;  // -126
  if (code <= least || code > (infinity | sign_bit)) return ex2_ftz(code, f);
  const std::uint32_t root = ex2_ftz(product(code, power(-1)), f);
  return root == 0 ? 0 : product(root, root);
}

/// `rcp.approx.f32`: above 2^126 it is (1 / (x / 4)) / 4, below 2^-126 (1 / (x 2^24)) 2^24.
constexpr std::uint32_t rcp(std::uint32_t code, const Interpolator& f = rcp_interpolator) {
  const std::uint32_t magnitude = code & ~sign_bit;
  const int scale = magnitude > infinity      ? 0
                    : magnitude > power(126)  ? -2
                    : magnitude < power(-126) ? 24
                                              : 0;
  if (scale == 0) return rcp_ftz(code, f);
  return product(rcp_ftz(product(code, power(scale)), f), power(scale));
}

}  // namespace guardbit::emulator::mufu
