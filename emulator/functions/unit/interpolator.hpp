#pragma once

#include <cstdint>
#include <span>

// What every function of the special function unit shares: a parabola in each segment of a binade,
// with a square that leaves columns of partial products out. U is the unit of the last place of the
// function's result where that has 24 bits.
namespace guardbit::emulator::mufu {

/// Fraction bits of an argument on its binade.
inline constexpr int fraction_bits = 23;
/// Bits of an argument within its segment; the interpolator reads no more.
inline constexpr int offset_bits = 17;
/// Interpolated results count units of 2^-20 U.
inline constexpr int guard_bits = 20;

/// The square of a number of 17 bits, without the columns of its partial products that weigh less
/// than 2^lowest_column.
struct Squarer {
  int lowest_column = 19;
};

/// In units of 2^lowest_column. Partial products are x_i 2^(2i) and, for i > j,
/// x_i x_j 2^(i+j+1). Those of the upper half of the columns are the square of x's upper bits; each
/// lower bit adds what lies far enough above it (tests/claims/squarer_test.cpp).
constexpr std::int64_t square(const Squarer& squarer, std::uint32_t x) {
  const int column = squarer.lowest_column, half = column / 2;
  const std::uint64_t upper = x >> half;
  std::uint64_t sum = upper * upper >> column % 2;
  for (int j = column > offset_bits ? column - offset_bits : 0; j < half; ++j)
    sum += (x >> (column - 1 - j)) & (0 - (x >> j & 1U));  // no branch: bits are random
  return static_cast<std::int64_t>(sum);
}

/// One segment: coefficients of 1, x and S(x), x in [0, 1), as counts of their grids' steps.
struct Segment {
  std::int32_t c0, c1, c2;
};

/// The grids on which coefficients lie: their steps are 2^c0, 2^c1 and 2^c2 times U.
struct Grid {
  int c0, c1, c2;
};

/// A function on one binade of its argument.
struct Interpolator {
  /// 2^n of them; the leading n fraction bits choose one
  std::span<const Segment> segments;
  Grid grid;
  /// added to every c0, in units of 2^-20 U: it centres the errors of the truncated result
  std::int32_t bias = 0;
};

/// Where a fraction of 23 bits lies.
struct Place {
  std::uint32_t segment, offset;
};
constexpr Place place_of(const Interpolator& f, std::uint32_t fraction) {
  // Not std::countr_zero: nvcc 13.0 has no __builtin_ctzl in device code and, without a warning,
  // compiles what depends on it to anything.
  const int rest_bits = fraction_bits - (63 - __builtin_clzll(f.segments.size()));
  const std::uint32_t rest = fraction & ((1U << rest_bits) - 1);
  return {fraction >> rest_bits, rest_bits > offset_bits ? rest >> (rest_bits - offset_bits)
                                                         : rest << (offset_bits - rest_bits)};
}

/// The function at a fraction of 23 bits: c0 + c1 x + c2 S(x) and the bias, exactly, in units of
/// 2^-20 U.
constexpr std::int64_t interpolate(const Interpolator& f, const Squarer& squarer,
                                   std::uint32_t fraction) {
  const Place place = place_of(f, fraction);
  const Segment& s = f.segments[place.segment];
  const auto term = [](std::int64_t coefficient, int exponent) {
    return coefficient * (std::int64_t{1} << exponent);
  };
  return term(s.c0, guard_bits + f.grid.c0) + f.bias +
         term(s.c1, guard_bits + f.grid.c1 - offset_bits) * place.offset +
         term(s.c2, guard_bits + f.grid.c2 - 2 * offset_bits + squarer.lowest_column) *
             square(squarer, place.offset);
}

}  // namespace guardbit::emulator::mufu
