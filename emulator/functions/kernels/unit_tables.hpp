#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "emulator/functions/unit/special_function_unit.hpp"

// The special function unit's coefficients as vectors take them.
namespace guardbit::emulator::kernels {

/// Entries of two words, apart and together.
template <std::size_t count>
struct CoefficientTable {
  std::array<std::uint32_t, count> first{}, second{};
  /// the first word in the low half
  std::array<std::uint64_t, count> entries{};

  constexpr void set(std::size_t place, std::uint32_t first_word, std::uint32_t second_word) {
    first[place] = first_word;
    second[place] = second_word;
    entries[place] = std::uint64_t{second_word} << 32 | first_word;
  }
};

/// How a function's coefficients become sums of 32-bit words. T counts units of 2^-fraction U; all
/// of c1 have one sign.
struct CoefficientScale {
  int fraction = 0;
  /// of c0's grid
  int c0 = 0;
  bool is_falling = false;
  std::int32_t bias = 0;
};

/// Of functions whose tables have one grid for c0 and c2, and one for c1 up to a factor of two.
constexpr CoefficientScale coefficient_scale(const mufu::UnitFunction& f) {
  CoefficientScale scale;
  const mufu::Interpolator& first = f.binades[0];
  scale.fraction = std::max(mufu::offset_bits - first.grid.c1, 15 - first.grid.c2);
  scale.c0 = first.grid.c0;
  scale.is_falling = first.segments[0].c1 < 0;
  scale.bias = first.bias >> (mufu::guard_bits - scale.fraction);
  return scale;
}

/// c0 as it is, and the magnitude of c1 above c2, 16 bits each. Binades follow one another, the
/// last one first where the leading bit counts odd exponents: bit 0 of a biased exponent is set
/// where the exponent is even.
template <const mufu::UnitFunction& f, std::size_t count>
constexpr CoefficientTable<count> coefficient_table() {
  constexpr CoefficientScale scale = coefficient_scale(f);
  CoefficientTable<count> table;
  std::size_t place = 0;
  for (int i = f.binade_count - 1; i >= 0; --i) {
    const mufu::Interpolator& binade = f.binades[static_cast<std::size_t>(i)];
    for (const mufu::Segment& s : binade.segments) {
      const auto c1 = static_cast<std::uint32_t>(s.c1 < 0 ? -s.c1 : s.c1);
      const std::int32_t c2 = s.c2 * (1 << (scale.fraction + binade.grid.c2 - 15));
      table.set(place++, static_cast<std::uint32_t>(s.c0),
                c1 << 16 | (static_cast<std::uint32_t>(c2) & 0xffff));
    }
  }
  return table;
}

/// Whether coefficients fit there, and scales are the binades' own.
template <const mufu::UnitFunction& f>
constexpr bool fits_coefficient_table() {
  constexpr CoefficientScale scale = coefficient_scale(f);
  for (int i = 0; i < f.binade_count; ++i) {
    const mufu::Interpolator& binade = f.binades[static_cast<std::size_t>(i)];
    if (binade.grid.c0 != scale.c0 || binade.grid.c2 != f.binades[0].grid.c2) return false;
    if (binade.bias != f.binades[0].bias ||
        scale.bias * (1 << (mufu::guard_bits - scale.fraction)) != binade.bias)
      return false;
    for (const mufu::Segment& s : binade.segments) {
      const std::int32_t c2 = s.c2 * (1 << (scale.fraction + binade.grid.c2 - 15));
      if (s.c0 < 0 || (s.c1 < 0) != scale.is_falling || s.c1 > 0xffff || s.c1 < -0xffff ||
          c2 < -0x8000 || c2 > 0x7fff)
        return false;
    }
  }
  return true;
}

/// Of tanh: c0, c1 and c2 in units of 2^-15 U, c0 in units of U. An entry's first word has c0 in 24
/// bits and 8 bits of c1, its second one the other 11 of c1, and from bit 14 on c2 with its sign. A
/// binade's segments follow those of the one before.
struct TanhTable {
  static constexpr int fraction = 15;
  CoefficientTable<64> coefficients{};
  /// of each binade: its first segment, and the number of bits that choose one
  alignas(16) std::array<std::uint8_t, 16> first{}, index_bits{};
};
constexpr TanhTable tanh_table() {
  TanhTable table;
  std::size_t place = 0;
  for (std::size_t i = 0; i < mufu::most_binades; ++i) {
    const mufu::Interpolator& binade = mufu::tanh.binades[i];
    table.first[i] = static_cast<std::uint8_t>(place);
    table.index_bits[i] = static_cast<std::uint8_t>(std::countr_zero(binade.segments.size()));
    for (const mufu::Segment& s : binade.segments) {
      const auto c0 = static_cast<std::uint32_t>(s.c0) << binade.grid.c0;
      const auto c1 = static_cast<std::uint32_t>(s.c1) << (binade.grid.c1 - 2);
      const auto c2 = static_cast<std::uint32_t>(s.c2) << binade.grid.c2;
      table.coefficients.set(place++, c0 | c1 << 24, c1 >> 8 | c2 << 14);
    }
  }
  return table;
}

}  // namespace guardbit::emulator::kernels
