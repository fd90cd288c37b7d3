#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

#include "emulator/functions/unit/rdna_unit_tables.hpp"
#include "formats/arithmetic.hpp"
#include "formats/codec.hpp"
#include "formats/format_catalogue.hpp"

// The special functions of AMD's RDNA3 and RDNA4, from codes of FP32 to codes. The argument chooses
// a segment and lies at t in it; a cubic with the segment's coefficients is evaluated in integers,
// of whose products about 24 bits are kept. Operands and results below 2^-126 are zeros, but for
// those of sine and cosine, which follow the mode of subnormals: here they are kept.
namespace guardbit::emulator::rdna {

using Code = std::uint32_t;

inline constexpr Code sign_bit = 0x80000000, infinity = 0x7f800000, least_normal = 0x00800000,
                      one = 0x3f800000, invalid = 0xffc00000;

constexpr Code magnitude_of(Code x) { return x & ~sign_bit; }
constexpr bool is_nan(Code x) { return magnitude_of(x) > infinity; }
/// A NaN keeps its sign and payload.
constexpr Code quieted(Code x) { return x | 0x00400000; }
constexpr int exponent_of(Code x) { return static_cast<int>(magnitude_of(x) >> 23) - 127; }
constexpr std::int64_t power_of_two(int exponent) { return std::int64_t{1} << exponent; }
constexpr std::int64_t absolute(std::int64_t x) { return x < 0 ? -x : x; }

/// x / 2^bits, rounded to the nearest integer, halves to the even one.
constexpr std::int64_t nearest(std::int64_t x, int bits) {
  const std::int64_t floor = x >> bits, rest = x - (floor << bits), half = power_of_two(bits - 1);
  return floor + (rest > half || (rest == half && floor % 2 != 0) ? 1 : 0);
}

/// x y / 2^23, of which 24 bits are kept.
constexpr std::int64_t kept_product(std::int64_t x, std::int64_t y) {
  const std::int64_t product = x * y;
  return product >= power_of_two(47) ? 2 * nearest(product, 24) : nearest(product, 23);
}

enum class Packing : std::uint8_t {
  toward_zero,
  away_from_zero,
  /// the number above what is cut, even if nothing is cut
  next
};

/// The code of fixed / 2^point, which is positive.
constexpr Code packed(std::int64_t fixed, int point, Packing packing) {
  const int leading = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(fixed))) - 1;
  const int cut = leading - 23;
  std::int64_t significand = cut >= 0 ? fixed >> cut : fixed << -cut;
  const bool is_exact = cut <= 0 || significand << cut == fixed;
  if (packing == Packing::next || (packing == Packing::away_from_zero && !is_exact)) ++significand;
  return static_cast<Code>((std::int64_t{leading - point + 126} << 23) + significand);
}

/// 2^x
constexpr Code exponential(Code x) {
  const Code magnitude = magnitude_of(x);
  const bool negative = x != magnitude;
  if (is_nan(x)) return quieted(x);
  if (magnitude < 0x33800000) return one;  // 2^-24
  if (negative && magnitude > 0x42fc0000) return 0;
  if (!negative && magnitude >= 0x43000000) return infinity;
  // In steps of 2^-29. A negative number's bits are inverted, which is a step less than exact.
  const std::int64_t significand = (magnitude & 0x7fffff) | 0x800000;
  const int left = exponent_of(x) + 6;
  const std::int64_t absolute = left >= 0 ? significand << left : significand >> -left;
  const std::int64_t steps = negative ? ~absolute : absolute;
  const Cubic& c = exponential_table.at(static_cast<std::size_t>(steps >> 24 & 31));
  const std::int64_t t = steps & 0xffffff, top = t >> 6;
  const std::int64_t slope = c.linear * t;
  const std::int64_t linear =
      slope >= power_of_two(47) ? nearest(slope, 24) : nearest(slope, 23) >> 1;
  const std::int64_t curvature = nearest((std::int64_t{c.quadratic} << 7) + c.cubic * top, 7);
  const std::int64_t sum = ((c.constant + linear) << 8) + kept_product(curvature, top * top >> 12);
  return static_cast<Code>((((steps >> 29) + 126) << 23) + nearest(sum, 13));
}

namespace logarithms {

/// Of x from 1 - 2^-6 to 1, which lies k 2^-24 below 1: two segments. Small k are shifted left by
/// groups of four bits.
constexpr Code below_one(Code x) {
  struct Row {
    std::int64_t constant, linear, quadratic, cubic;
  };
  constexpr std::array<Row, 2> rows = {
      {{0, 12102203, 12101979, 2035248}, {100, 12102221, 12097323, 2088428}}};
  const std::int64_t k = one - x;
  const Row& row = rows.at(k >= 0x20000 ? 1 : 0);
  const int width = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(k)));
  const int left = width < 18 ? (18 - width) / 4 * 4 : 0;
  const auto without_low_bits = [](std::int64_t n, int bits) {
    return bits > 0 ? n >> bits << bits : n;
  };
  const std::int64_t linear = without_low_bits(2 * row.linear * k, 14 - left);
  const std::int64_t square = without_low_bits(k * k, 12 - left);
  const std::int64_t curvature = nearest((row.quadratic << 22) + row.cubic * (k - 1), 22);
  const int right = 38 - left;
  const std::int64_t quadratic = (curvature * square + power_of_two(right) - 1) >> right;
  const std::int64_t sum = (linear << 2) + (quadratic << (16 - left)) - (row.constant << 16);
  return sign_bit | packed(sum, 50, Packing::away_from_zero);
}

/// Of x from 1 to 1 + 2^-5, which lies k 2^-23 above 1: three segments. Small k of the first are
/// shifted, too.
constexpr Code above_one(Code x) {
  struct Row {
    std::int64_t constant, linear, quadratic, cubic;
  };
  constexpr std::array<Row, 3> rows = {{{0, 12102203, 12102094, 1999052},
                                        {192, 12102186, 12097614, 1948887},
                                        {2856, 12102072, 12084310, 1883467}}};
  const std::int64_t k = x - one;
  const std::size_t segment = k < 0x10000 ? 0 : k < 0x20000 ? 1 : 2;
  const Row& row = rows.at(segment);
  const int width = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(k)));
  const int left = segment == 0 ? (18 - width) / 4 * 4 : 0;
  const std::int64_t linear = (row.linear * (k << left)) >> 13 << 2;
  const std::int64_t curvature = nearest((row.quadratic << 22) - row.cubic * (2 * k + 1), 22);
  const std::int64_t sum = row.constant + linear - kept_product(curvature, (k << left) * k >> 12);
  return packed(sum, 35 + left, Packing::next);
}

/// Of other x: the exponent is added before the sum is rounded, downwards.
constexpr Code elsewhere(Code x) {
  const std::int64_t t = x & 0x3ffff;
  const std::size_t segment = x >> 18 & 31;
  const Cubic& c = logarithm_table.at(segment == 1 && t >= 0x20000 ? 32 : segment);
  const std::int64_t linear = (c.linear * t) >> 16;
  const std::int64_t curvature =
      nearest((std::int64_t{c.quadratic} << 22) - c.cubic * (2 * t + 1), 22);
  const std::int64_t sum = exponent_of(x) * power_of_two(35) + ((c.constant + linear) << 5) -
                           kept_product(curvature, t * t >> 12);
  return sum < 0 ? sign_bit | packed(-sum, 35, Packing::away_from_zero)
                 : packed(sum, 35, Packing::toward_zero);
}

}  // namespace logarithms

/// log2(x)
constexpr Code logarithm(Code x) {
  if (is_nan(x)) return quieted(x);
  if (magnitude_of(x) < least_normal) return sign_bit | infinity;
  if ((x & sign_bit) != 0) return invalid;
  if (x == infinity) return infinity;
  if (x == one) return 0;
  if (x >= 0x3f7c0000 && x < one) return logarithms::below_one(x);
  if (x > one && x < 0x3f840000) return logarithms::above_one(x);
  return logarithms::elsewhere(x);
}

/// The quadratic and the cubic term of a reciprocal or root, t 2^-24 into its segment.
constexpr std::int64_t higher_terms(const Cubic& c, std::int64_t t, int quadratic_left,
                                    int cubic_right) {
  const std::int64_t top = t >> 7;
  const std::int64_t curvature = (std::int64_t{c.quadratic} << quadratic_left) -
                                 nearest(c.cubic * ((t >> 4) + 1), cubic_right);
  return kept_product(curvature, top * top >> 10);
}

/// 1 / x
constexpr Code reciprocal(Code x) {
  const Code sign = x & sign_bit, magnitude = magnitude_of(x);
  if (is_nan(x)) return quieted(x);
  if (magnitude < least_normal) return sign | infinity;
  if (magnitude == infinity) return sign;
  const Cubic& c = reciprocal_table.at(x >> 18 & 31);
  const std::int64_t t = std::int64_t{x & 0x3ffff} << 6, slope = c.linear * t;
  const std::int64_t linear =
      slope >= power_of_two(44) ? nearest(slope, 21) : (slope + 0x17ffff) >> 21;
  const std::int64_t sum = std::int64_t{c.constant} * 512 - linear * 64 + higher_terms(c, t, 8, 12);
  const std::int64_t code =
      0x3e800000 + nearest(sum, 11) - std::int64_t{exponent_of(x)} * least_normal;
  return code < least_normal ? sign : sign | static_cast<Code>(code);
}

/// 1 / sqrt(x)
constexpr Code reciprocal_root(Code x) {
  const Code sign = x & sign_bit, magnitude = magnitude_of(x);
  if (is_nan(x)) return quieted(x);
  if (magnitude < least_normal) return sign | infinity;
  if (sign != 0) return invalid;
  if (magnitude == infinity) return 0;
  const int odd = exponent_of(x) & 1, half = (exponent_of(x) - odd) / 2;
  const Cubic& c = reciprocal_root_table.at(static_cast<std::size_t>(32 * odd) + (x >> 18 & 31));
  const std::int64_t t = std::int64_t{x & 0x3ffff} << 6, slope = c.linear * t;
  const std::int64_t linear = (slope + (slope >= power_of_two(43) ? 0x17ffff : 0x1bffff)) >> 21;
  const std::int64_t sum =
      std::int64_t{c.constant} * 1024 - linear * 128 + higher_terms(c, t, 9, 11);
  return static_cast<Code>(0x3e800000 + nearest(sum, 12) - std::int64_t{half} * least_normal);
}

/// sqrt(x)
constexpr Code root(Code x) {
  const Code sign = x & sign_bit, magnitude = magnitude_of(x);
  if (is_nan(x)) return quieted(x);
  if (magnitude < least_normal) return sign;
  if (sign != 0) return invalid;
  if (magnitude == infinity) return infinity;
  const int odd = exponent_of(x) & 1, half = (exponent_of(x) - odd) / 2;
  const Cubic& c = root_table.at(static_cast<std::size_t>(16 * odd) + (x >> 19 & 15));
  const std::int64_t t = std::int64_t{x & 0x7ffff} << 5, slope = c.linear * t;
  const std::int64_t linear = (slope + power_of_two(slope >= power_of_two(45) ? 21 : 20)) >> 22;
  const std::int64_t sum =
      std::int64_t{c.constant} * 1024 + linear * 128 - higher_terms(c, t, 8, 11);
  return static_cast<Code>(nearest(sum, 12) + std::int64_t{half + 126} * least_normal);
}

/// Sines and cosines of turns: the argument is in turns, so 1 / 4 is a right angle.
namespace turns {

/// An angle from 0 to an eighth of a turn, in steps of 2^-31 turns. Of angles that were reflected
/// at a multiple of an eighth, a step less is what places are cut from.
struct Octant {
  std::int64_t segment, t;
  bool is_reflected;

  constexpr std::int64_t place() const { return t - (is_reflected ? 1 : 0); }
};

/// The quadratic and the cubic coefficient together, of the sign that lowers the sum.
constexpr std::int64_t curvature(const Cubic& c, const Octant& angle) {
  const std::int64_t rise = c.cubic <= 0 ? angle.place() : 0xffffff - angle.place();
  const std::int64_t constant = c.cubic <= 0 ? -c.quadratic : -(c.quadratic + c.cubic);
  return nearest((constant << 24) + absolute(c.cubic) * (rise & ~63), 17);
}

/// The place without its last bits, to the nearest that has the same first bits.
constexpr std::int64_t shortened(std::int64_t place, int bits) {
  const std::int64_t most = (((place >> (20 + bits)) + 1) << 20) - 1;
  return std::min((place + power_of_two(bits - 1)) >> bits, most) << bits;
}

/// Sines in the first two segments, of which more bits are kept: in the first, small angles are
/// shifted left by groups of four bits.
constexpr Code small_sine(const Cubic& c, const Octant& angle) {
  const std::int64_t t = angle.t;
  const bool is_first = angle.segment == 0;
  const int width = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(t)));
  const int left = is_first && width < 24 ? (24 - width) / 4 * 4 : 0;
  const int linear_left = is_first && width < 25 ? (25 - width) / 4 * 4 : 0;
  std::int64_t place = is_first ? t << linear_left : shortened(angle.place(), 2);
  if (is_first && angle.is_reflected && (t << left & 0xfffff) == 0) --place;
  const int linear_point = is_first ? 32 + left : 30, point = 34 + left;
  const int square_point = std::min(34, 24 + left);
  const std::int64_t linear = (c.linear * place) >> (50 + linear_left - linear_point);
  const std::int64_t top = angle.place() >> 7, square = top * top >> (34 - square_point);
  const std::int64_t quadratic = nearest(curvature(c, angle) * square, 33 + square_point - point);
  const std::int64_t sum =
      (std::int64_t{c.constant} << (point - 26)) + (linear << (point - linear_point)) - quadratic;
  return packed(sum, point, Packing::toward_zero);
}

/// Other sines, and cosines.
constexpr Code large(const Cubic& c, const Octant& angle) {
  const std::int64_t slope = absolute(c.linear) * shortened(angle.place(), 4);
  const std::int64_t linear =
      slope >= power_of_two(45) ? 2 * nearest(slope, 22) : nearest(slope, 21);
  const std::int64_t top = angle.place() >> 7;
  const std::int64_t product = curvature(c, angle) * (top * top >> 10);
  // What remains is rounded up, after half a step of the kept bits was taken off.
  const std::int64_t remainder = product - power_of_two(product >= power_of_two(47) ? 23 : 22);
  const std::int64_t quadratic = remainder <= 0 ? 0 : (remainder + power_of_two(29) - 1) >> 29;
  const std::int64_t sum =
      std::int64_t{c.constant} * 8 + (c.linear < 0 ? -linear : linear) - 2 * quadratic;
  return packed(sum, 29, Packing::toward_zero);
}

/// A little less than 2 pi x, in FP32.
constexpr Code small_angle(Code x) {
  using formats::fp32;
  const formats::Unrounded product =
      formats::multiply(formats::decode(fp32, x), formats::decode(fp32, 0x40c90fd5));
  return static_cast<Code>(formats::encode(fp32, product, formats::Rounding::nearest_even));
}

constexpr Code sine_or_cosine(Code x, bool is_cosine) {
  const Code magnitude = magnitude_of(x);
  if (is_nan(x)) return quieted(x);
  if (magnitude == infinity) return invalid;
  if (magnitude == 0) return is_cosine ? one : x;
  if (!is_cosine && magnitude < 0x39c00000) return small_angle(x);
  const int left = exponent_of(x) + 8;
  if (left >= 31) return is_cosine ? one : 0;
  const std::int64_t significand = (magnitude & 0x7fffff) | 0x800000;
  const std::int64_t phase = left >= 0    ? significand << left & 0x7fffffff
                             : left > -24 ? significand >> -left
                                          : 0;
  const std::int64_t quadrant = phase >> 29, in_quadrant = phase & 0x1fffffff;
  const bool is_reflected = in_quadrant >= 0x10000000;
  const std::int64_t steps = is_reflected ? 0x20000000 - in_quadrant : in_quadrant;
  const std::int64_t place = steps - (is_reflected ? 1 : 0);
  const bool takes_cosine = (is_cosine != (quadrant % 2 != 0)) != is_reflected;
  const Octant angle = {place >> 24, steps - (place >> 24 << 24), is_reflected};
  const auto segment = static_cast<std::size_t>(angle.segment);
  if (!takes_cosine && steps == 0) return 0;
  const Code result = takes_cosine && place < 46592 ? one
                      : takes_cosine                ? large(cosine_table.at(segment), angle)
                      : segment < 2                 ? small_sine(sine_table.at(segment), angle)
                                                    : large(sine_table.at(segment), angle);
  const bool is_negative = (quadrant >= 2) != (is_cosine ? quadrant % 2 != 0 : x != magnitude);
  return is_negative ? sign_bit | result : result;
}

}  // namespace turns

/// sin(2 pi x)
constexpr Code sine(Code x) { return turns::sine_or_cosine(x, false); }
/// cos(2 pi x)
constexpr Code cosine(Code x) { return turns::sine_or_cosine(x, true); }

}  // namespace guardbit::emulator::rdna
