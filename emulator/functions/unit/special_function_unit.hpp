#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <span>
#include <string_view>

#include "emulator/functions/unit/interpolator.hpp"
#include "emulator/functions/unit/special_function_tables.hpp"

// The special function unit of an NVIDIA GPU (the instruction MUFU): each function as data, and the
// interpreter that computes all of them. Arguments and results are codes of FP32; subnormal results
// are 0. Digests of all 2^32 results equal the hardware's of an sm_90 (docs/FUNCTIONS.md).
namespace guardbit::emulator::mufu {

inline constexpr std::uint32_t sign_bit = 0x80000000, infinity_code = 0x7f800000,
                               nan_code = 0x7fffffff;
inline constexpr std::uint32_t smallest_normal = 0x00800000, one_code = 0x3f800000;

/// What a finite argument becomes: a fraction of 23 bits, which the interpolator reads, and an
/// exponent.
enum class Reduction : std::uint8_t {
  /// |x| = 2^exponent (1 + fraction)
  significand,
  /// x = exponent + fraction, |x| cut to 23 fraction bits. A negative number's fraction is its
  /// ones'
  /// complement, one less than the difference, unless it is 0.
  fixed_point,
  /// |x| = whole turns + (quadrant + fraction) / 4, cut to 25 fraction bits. In odd quadrants the
  /// fraction is its ones' complement.
  turns,
};
constexpr auto words(Reduction) { return std::array{"significand", "fixed_point", "turns"}; }

/// A result that is not interpolated.
enum class Special : std::uint8_t {
  none,
  nan,
  /// these four with the argument's sign
  zero,
  one,
  infinity,
  itself,
  negative_infinity,
};
constexpr auto words(Special) {
  return std::array{"none", "nan", "zero", "one", "infinity", "itself", "negative_infinity"};
}

/// Arguments whose interpolated value would miss 1 and is replaced by it.
enum class ExactOne : std::uint8_t {
  nowhere,
  /// fraction 0 of the binade of 1
  at_one,
  /// fraction 0 of the first table's binades
  at_powers,
};
constexpr auto words(ExactOne) { return std::array{"nowhere", "at_one", "at_powers"}; }

/// The most binades with tables of their own.
inline constexpr int most_binades = 11;

/// A function of the unit.
struct UnitFunction {
  std::string_view name;
  Reduction reduction = Reduction::significand;
  /// Exponent e takes table (e - first_exponent) mod binade_count.
  std::array<Interpolator, most_binades> binades{};
  int binade_count = 1;
  int first_exponent = 0;
  /// U is 2^unit_exponent
  int unit_exponent = -24;
  /// The result is scaled by 2^(exponent_factor * floor((e - first_exponent) / binade_count)).
  int exponent_factor = 0;
  /// The result is T - 1 + e, with T cut to multiples of 2^-36; a negative sum is the ones'
  /// complement.
  bool adds_exponent = false;
  /// the quadrant that fractions of the first one are in
  int quadrant = 0;
  /// f(-x) = -f(x); else the sign does not count, except in fixed point
  bool is_odd = false;
  /// of a zero or subnormal argument, a negative one, an infinity
  Special zero = Special::none, negative = Special::none, infinite = Special::none;
  /// of exponents below the first table's and above the last one's; none: tables repeat
  Special below = Special::none, above = Special::none;
  ExactOne exact_one = ExactOne::nowhere;
  Squarer squarer{};
};

/// An argument after its reduction. `negative` is the result's sign.
struct Reduced {
  bool negative = false;
  int exponent = 0;
  std::uint32_t fraction = 0;
};

/// How a result came about.
struct Evaluation {
  std::uint32_t code = 0;
  /// if not none, nothing below was computed
  Special special = Special::none;
  Reduced reduced{};
  /// into UnitFunction::binades
  int binade = 0;
  /// T, in units of 2^-20 U
  std::int64_t interpolated = 0;
  bool is_exact_one = false;
  /// |result| before it is cut to 24 bits is magnitude * 2^exponent
  std::uint64_t magnitude = 0;
  int exponent = 0;
};

/// A number in units of 2^-n, cut.
constexpr std::uint32_t fixed_point(std::uint32_t significand, int exponent, int n) {
  const int shift = exponent + n - fraction_bits;
  if (shift <= -32 || shift >= 32) return 0;
  return shift >= 0 ? significand << shift : significand >> -shift;
}

constexpr Reduced reduce(const UnitFunction& f, std::uint32_t code) {
  constexpr std::uint32_t fraction_mask = (1U << fraction_bits) - 1;
  const bool negative = (code & sign_bit) != 0;
  const int exponent = static_cast<int>((code & ~sign_bit) >> fraction_bits) - 127;
  const std::uint32_t fraction = code & fraction_mask;
  const std::uint32_t significand = fraction | (1U << fraction_bits);
  switch (f.reduction) {
    case Reduction::significand: break;
    case Reduction::fixed_point: {
      // Above 2^8 results are infinite or 0.
      const std::uint32_t fixed = fixed_point(significand, exponent < 8 ? exponent : 8, 23);
      const auto whole = static_cast<int>(fixed >> fraction_bits);
      const std::uint32_t part = fixed & fraction_mask;
      if (!negative) return {false, whole, part};
      return part == 0 ? Reduced{false, -whole, 0}
                       : Reduced{false, -whole - 1, part ^ fraction_mask};
    }
    case Reduction::turns: {
      const std::uint32_t fixed = fixed_point(significand, exponent, 25);
      const auto quadrant = (fixed >> fraction_bits) + static_cast<unsigned>(f.quadrant);
      const std::uint32_t part = fixed & fraction_mask;
      return {(negative && f.is_odd) != ((quadrant & 2) != 0), 0,
              (quadrant & 1) != 0 ? part ^ fraction_mask : part};
    }
  }
  return {negative && f.is_odd, exponent, fraction};
}

/// Not of a NaN.
constexpr Special special_of(const UnitFunction& f, std::uint32_t code) {
  const std::uint32_t magnitude = code & ~sign_bit;
  if (magnitude < smallest_normal && f.zero != Special::none) return f.zero;
  if (code != magnitude && f.negative != Special::none) return f.negative;
  if (magnitude == infinity_code && f.infinite != Special::none) return f.infinite;
  const int place = static_cast<int>(magnitude >> fraction_bits) - 127 - f.first_exponent;
  if (place < 0 && f.below != Special::none) return f.below;
  if (place >= f.binade_count && f.above != Special::none) return f.above;
  return Special::none;
}

constexpr std::uint32_t code_of(Special special, std::uint32_t argument) {
  const std::uint32_t sign = argument & sign_bit;
  switch (special) {
    case Special::none:
    case Special::nan: return nan_code;
    case Special::zero: return sign;
    case Special::one: return sign | one_code;
    case Special::infinity: return sign | infinity_code;
    case Special::itself: return argument;
    case Special::negative_infinity: return sign_bit | infinity_code;
  }
  return nan_code;
}

/// A number cut to 24 significant bits; below the normal range 0, above it infinity.
constexpr std::uint32_t truncated(bool negative, std::uint64_t magnitude, int exponent) {
  const std::uint32_t sign = negative ? sign_bit : 0;
  if (magnitude == 0) return sign;
  const int top = 63 - __builtin_clzll(magnitude);
  const int biased = top + exponent + 127;
  if (biased < 1) return sign;
  if (biased > 254) return sign | infinity_code;
  const std::uint64_t significand =
      top > fraction_bits ? magnitude >> (top - fraction_bits) : magnitude << (fraction_bits - top);
  // The leading one counts the exponent up.
  return sign | ((static_cast<std::uint32_t>(biased - 1) << fraction_bits) +
                 static_cast<std::uint32_t>(significand));
}

/// The function of any code, and how it came about.
constexpr Evaluation evaluate(const UnitFunction& f, std::uint32_t code) {
  Evaluation e;
  e.special = (code & ~sign_bit) > infinity_code ? Special::nan : special_of(f, code);
  if (e.special != Special::none) {
    e.code = code_of(e.special, code);
    return e;
  }
  e.reduced = reduce(f, code);
  // Rounded down, also of a negative number.
  const int place = e.reduced.exponent - f.first_exponent;
  const int period = (place - (place < 0 ? f.binade_count - 1 : 0)) / f.binade_count;
  e.binade = place - period * f.binade_count;
  const int interpolated_exponent = f.unit_exponent - guard_bits;
  e.is_exact_one =
      e.reduced.fraction == 0 && ((f.exact_one == ExactOne::at_one && e.reduced.exponent == 0) ||
                                  (f.exact_one == ExactOne::at_powers && e.binade == 0));
  e.interpolated = e.is_exact_one ? std::int64_t{1} << -interpolated_exponent
                                  : interpolate(f.binades[static_cast<std::size_t>(e.binade)],
                                                f.squarer, e.reduced.fraction);
  if (f.adds_exponent) {
    constexpr int sum_bits = 36;
    const std::int64_t sum = (e.interpolated >> (-interpolated_exponent - sum_bits)) +
                             std::int64_t{e.reduced.exponent - 1} * (std::int64_t{1} << sum_bits);
    e.reduced.negative = sum < 0;
    e.magnitude = static_cast<std::uint64_t>(sum < 0 ? ~sum : sum);
    e.exponent = -sum_bits;
  } else {
    e.magnitude = static_cast<std::uint64_t>(e.interpolated);
    e.exponent = interpolated_exponent + f.exponent_factor * period;
  }
  e.code = truncated(e.reduced.negative, e.magnitude, e.exponent);
  return e;
}

/// The tables of binades that follow one another in `segments`, `count` with those grids and a
/// common number of segments.
template <std::size_t count>
constexpr std::array<Interpolator, most_binades> binades_of(std::span<const Segment> segments,
                                                            Grid grid, std::int32_t bias = 0) {
  std::array<Interpolator, most_binades> binades{};
  const std::size_t each = segments.size() / count;
  for (std::size_t i = 0; i < count; ++i)
    binades[i] = {segments.subspan(i * each, each), grid, bias};
  return binades;
}

/// What tanh has of a binade. Grids are as coarse as its coefficients allow.
struct TanhBinade {
  int segments;
  Grid grid;
};
constexpr std::array<Interpolator, most_binades> tanh_binades() {
  constexpr std::array<TanhBinade, most_binades> each = {{{1, {16, 5, 1}},
                                                          {1, {1, 3, 2}},
                                                          {1, {2, 4, 3}},
                                                          {2, {1, 3, 2}},
                                                          {2, {2, 5, 3}},
                                                          {4, {1, 4, 2}},
                                                          {4, {2, 4, 3}},
                                                          {4, {3, 5, 4}},
                                                          {8, {2, 4, 3}},
                                                          {16, {0, 2, 1}},
                                                          {8, {2, 4, 3}}}};
  std::array<Interpolator, most_binades> binades{};
  std::span<const Segment> rest = tanh_segments;
  for (std::size_t i = 0; i < each.size(); ++i) {
    const auto count = static_cast<std::size_t>(each[i].segments);
    binades[i] = {rest.first(count), each[i].grid};
    rest = rest.subspan(count);
  }
  return binades;
}

inline constexpr UnitFunction ex2 = {.name = "ex2",
                                     .reduction = Reduction::fixed_point,
                                     .binades = binades_of<1>(ex2_segments, {-2, 2, 0}, 195648),
                                     .unit_exponent = -23,
                                     .exponent_factor = 1};
inline constexpr UnitFunction lg2 = {.name = "lg2",
                                     .binades = binades_of<1>(lg2_segments, {-3, 2, 1}, 26784),
                                     .unit_exponent = -23,
                                     .adds_exponent = true,
                                     .zero = Special::negative_infinity,
                                     .negative = Special::nan,
                                     .infinite = Special::infinity,
                                     .exact_one = ExactOne::at_one};
inline constexpr UnitFunction rcp = {.name = "rcp",
                                     .binades = binades_of<1>(rcp_segments, {-2, 1, 0}, 64736),
                                     .exponent_factor = -1,
                                     .is_odd = true,
                                     .zero = Special::infinity,
                                     .infinite = Special::zero};
inline constexpr UnitFunction rsqrt = {.name = "rsqrt",
                                       .binades = binades_of<2>(rsqrt_segments, {-2, 1, 1}, -16),
                                       .binade_count = 2,
                                       .exponent_factor = -1,
                                       .zero = Special::infinity,
                                       .negative = Special::nan,
                                       .infinite = Special::zero,
                                       .exact_one = ExactOne::at_powers};
inline constexpr UnitFunction sqrt = {
    .name = "sqrt",
    .binades = {{{std::span(sqrt_segments).first(64), {-2, 0, -1}, -8},
                 {std::span(sqrt_segments).last(64), {-2, 1, -1}, -8}}},
    .binade_count = 2,
    .unit_exponent = -23,
    .exponent_factor = 1,
    .zero = Special::zero,
    .negative = Special::nan,
    .infinite = Special::infinity};
inline constexpr UnitFunction sin = {.name = "sin",
                                     .reduction = Reduction::turns,
                                     .binades = binades_of<1>(sine_segments, {-1, 4, 2}),
                                     .is_odd = true,
                                     .infinite = Special::nan};
inline constexpr UnitFunction cos = {.name = "cos",
                                     .reduction = Reduction::turns,
                                     .binades = binades_of<1>(sine_segments, {-1, 4, 2}),
                                     .quadrant = 1,
                                     .infinite = Special::nan};
inline constexpr UnitFunction tanh = {.name = "tanh",
                                      .binades = tanh_binades(),
                                      .binade_count = most_binades,
                                      .first_exponent = -8,
                                      .is_odd = true,
                                      .below = Special::itself,
                                      .above = Special::one};

}  // namespace guardbit::emulator::mufu
