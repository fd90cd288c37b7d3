#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "emulator/functions/unit/special_function_forms.hpp"

// The special function unit of one number on the host: mufu::evaluate written out for each function
// where its argument is nothing special.
namespace guardbit::emulator::host_unit {

using mufu::fraction_bits;
using mufu::guard_bits;
using mufu::offset_bits;
using mufu::UnitFunction;

inline constexpr std::uint32_t fraction_mask = (1U << fraction_bits) - 1;
inline constexpr std::uint32_t offset_mask = (1U << offset_bits) - 1;

/// A segment's coefficients in units of 2^-20 U, of 1, x / 2^17 and S(x) / 2^15.
struct Coefficients {
  std::int64_t c0;
  std::int32_t c1, c2;
};
constexpr Coefficients coefficients_of(const mufu::Interpolator& f, const mufu::Segment& s) {
  constexpr int square_bits = 15;
  return {(std::int64_t{s.c0} << (guard_bits + f.grid.c0)) + f.bias,
          s.c1 * (1 << (guard_bits + f.grid.c1 - offset_bits)),
          s.c2 * (1 << (guard_bits + f.grid.c2 - square_bits))};
}

/// Of all binades, one after the other.
template <const UnitFunction& f>
constexpr auto table_of() {
  constexpr auto count = [] {
    std::size_t sum = 0;
    for (int i = 0; i < f.binade_count; ++i)
      sum += f.binades[static_cast<std::size_t>(i)].segments.size();
    return sum;
  }();
  std::array<Coefficients, count> table{};
  std::size_t place = 0;
  for (int i = 0; i < f.binade_count; ++i) {
    const mufu::Interpolator& binade = f.binades[static_cast<std::size_t>(i)];
    for (const mufu::Segment& s : binade.segments) table[place++] = coefficients_of(binade, s);
  }
  return table;
}
template <const UnitFunction& f>
inline constexpr auto table = table_of<f>();

/// Bytes that are added: of the upper 8 bits what is left of them shifted by 1 to 7, and of 7 lower
/// bits which of these take part.
struct SquareBytes {
  std::array<std::uint64_t, 256> shifted{};
  std::array<std::uint64_t, 128> taken{};
};
constexpr SquareBytes square_bytes() {
  SquareBytes bytes;
  for (int i = 1; i <= 7; ++i) {
    for (std::uint64_t u = 0; u < bytes.shifted.size(); ++u) bytes.shifted[u] |= u >> i << (8 * i);
    for (std::uint64_t n = 0; n < bytes.taken.size(); ++n)
      if ((n >> (7 - i) & 1) != 0) bytes.taken[n] |= std::uint64_t{0xff} << (8 * i);
  }
  return bytes;
}
inline constexpr SquareBytes bytes_of_squares = square_bytes();

/// mufu::square of 17 bits from column 19 on.
constexpr std::int32_t square(std::uint32_t x) {
  const std::uint32_t upper = x >> 9;
  const std::uint64_t bytes =
      bytes_of_squares.shifted[upper] & bytes_of_squares.taken[x >> 2 & 127];
  return static_cast<std::int32_t>((upper * upper >> 1) +
                                   static_cast<std::uint32_t>(bytes * 0x0101010101010101 >> 56));
}

/// T in units of 2^-20 U.
constexpr std::int64_t interpolate(const Coefficients& c, std::uint32_t x) {
  return c.c0 + std::int64_t{c.c1} * x + std::int64_t{c.c2} * square(x);
}
constexpr std::uint32_t whole_part(std::int64_t t) {
  return static_cast<std::uint32_t>(t >> guard_bits);
}

/// An integer below 2^53 times a power of 2, cut to 24 bits. It is 0 or a normal number.
inline float cut(std::int64_t magnitude, double unit) {
  const auto exact = std::bit_cast<std::uint64_t>(static_cast<double>(magnitude) * unit);
  return static_cast<float>(std::bit_cast<double>(exact & ~((std::uint64_t{1} << 29) - 1)));
}
inline float with_sign(float magnitude, std::uint32_t sign) {
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(magnitude) | sign);
}

constexpr bool is_positive_normal(std::uint32_t code) {
  return code - mufu::smallest_normal < mufu::infinity_code - mufu::smallest_normal;
}

/// The arguments that `usual` takes; no form scales them.
inline bool is_usual(const UnitFunction& f, float x) {
  const auto code = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t magnitude = code & ~mufu::sign_bit;
  if (&f == &mufu::ex2) return magnitude < 0x42fc0000;  // 126
  if (&f == &mufu::rcp) return magnitude - mufu::smallest_normal < 251U << fraction_bits;
  if (&f == &mufu::sin || &f == &mufu::cos) return magnitude < 0x42000000;  // 32
  if (&f == &mufu::tanh) return magnitude - (119U << fraction_bits) < 11U << fraction_bits;
  return is_positive_normal(code);
}

inline float usual_ex2(float x) {
  auto fixed = static_cast<std::int32_t>(x * 0x1p23F);
  if ((fixed & static_cast<std::int32_t>(fraction_mask)) != 0) fixed += fixed >> 31;
  const auto value = static_cast<std::uint32_t>(fixed);
  const std::int64_t t =
      interpolate(table<mufu::ex2>[value >> offset_bits & 63], value & offset_mask);
  return std::bit_cast<float>(
      whole_part(t) +
      ((static_cast<std::uint32_t>(fixed >> fraction_bits) + 126) << fraction_bits));
}
inline float usual_rcp(std::uint32_t code) {
  const std::int64_t t = interpolate(table<mufu::rcp>[code >> 16 & 127], code << 1 & offset_mask);
  const std::uint32_t exponent = code & mufu::infinity_code;
  return std::bit_cast<float>((whole_part(t) + (252U << fraction_bits) - exponent) |
                              (code & mufu::sign_bit));
}
/// Of roots: the tables of both parities, and half the exponent at its place.
constexpr std::uint32_t root_segment(std::uint32_t code) {
  return (code >> offset_bits & 127) ^ 64;
}
constexpr std::uint32_t half_exponent(std::uint32_t code) {
  return (code + 0x800000) >> 1 & mufu::infinity_code;
}
inline float usual_rsqrt(std::uint32_t code) {
  const std::int64_t t = interpolate(table<mufu::rsqrt>[root_segment(code)], code & offset_mask);
  const std::uint32_t whole = (code & 0xffffff) == 0x800000 ? 1U << 24 : whole_part(t);
  return std::bit_cast<float>(whole + (189U << fraction_bits) - half_exponent(code));
}
inline float usual_sqrt(std::uint32_t code) {
  const std::int64_t t = interpolate(table<mufu::sqrt>[root_segment(code)], code & offset_mask);
  return std::bit_cast<float>(whole_part(t) + (62U << fraction_bits) + half_exponent(code));
}
inline float usual_lg2(std::uint32_t code) {
  if (code == mufu::one_code) return 0;
  constexpr int sum_bits = 36;
  const std::int64_t t =
      interpolate(table<mufu::lg2>[code >> offset_bits & 63], code & offset_mask);
  const auto exponent = static_cast<std::int64_t>(code >> fraction_bits) - 127;
  const std::int64_t sum =
      (t >> (guard_bits - mufu::lg2.unit_exponent - sum_bits)) + (exponent - 1) * (1LL << sum_bits);
  return with_sign(cut(sum ^ (sum >> 63), 0x1p-36), sum < 0 ? mufu::sign_bit : 0);
}
template <const UnitFunction& f>
inline float usual_sine(float turns) {
  const auto code = std::bit_cast<std::uint32_t>(turns);
  const auto fixed = static_cast<std::uint32_t>(
      static_cast<std::int32_t>(std::bit_cast<float>(code & ~mufu::sign_bit) * 0x1p25F));
  const std::uint32_t quadrant = (fixed >> fraction_bits) + static_cast<std::uint32_t>(f.quadrant);
  const std::uint32_t part = (fixed ^ (0 - (quadrant & 1))) & fraction_mask;
  const std::int64_t t = interpolate(table<f>[part >> offset_bits], part & offset_mask);
  const std::uint32_t sign = f.is_odd ? code & mufu::sign_bit : 0;
  return with_sign(cut(t, 0x1p-44), sign ^ ((quadrant & 2) << 30));
}
/// Where a binade's segments begin.
constexpr std::array<std::uint8_t, mufu::most_binades> tanh_places() {
  std::array<std::uint8_t, mufu::most_binades> places{};
  std::size_t sum = 0;
  for (std::size_t i = 0; i < places.size(); ++i) {
    places[i] = static_cast<std::uint8_t>(sum);
    sum += mufu::tanh.binades[i].segments.size();
  }
  return places;
}
inline float usual_tanh(std::uint32_t code) {
  static constexpr auto places = tanh_places();
  const std::size_t binade = (code >> fraction_bits & 255) - 119;
  const mufu::Place place = mufu::place_of(mufu::tanh.binades[binade], code & fraction_mask);
  const std::int64_t t =
      interpolate(table<mufu::tanh>[places[binade] + place.segment], place.offset);
  return with_sign(cut(t, 0x1p-44), code & mufu::sign_bit);
}

/// The function of an argument that is_usual.
[[gnu::always_inline]] inline float usual(const UnitFunction& f, float x) {
  const auto code = std::bit_cast<std::uint32_t>(x);
  if (&f == &mufu::ex2) return usual_ex2(x);
  if (&f == &mufu::lg2) return usual_lg2(code);
  if (&f == &mufu::rcp) return usual_rcp(code);
  if (&f == &mufu::rsqrt) return usual_rsqrt(code);
  if (&f == &mufu::sqrt) return usual_sqrt(code);
  if (&f == &mufu::sin) return usual_sine<mufu::sin>(x);
  if (&f == &mufu::cos) return usual_sine<mufu::cos>(x);
  return usual_tanh(code);
}

}  // namespace guardbit::emulator::host_unit
