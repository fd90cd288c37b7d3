#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "formats/conversion/converters.hpp"
#include "formats/format.hpp"
#include "formats/rounding.hpp"
#include "formats/value.hpp"

namespace guardbit::formats {

/// How an array is converted. Every element is (its value, times the scale, exactly; rounded to
/// `source` where there is one) rounded once. The result depends on nothing else: not on the
/// number of threads, not on the packing.
struct ConversionOptions {
  Rounding rounding = Rounding::nearest_even;
  Overflow overflow = overflow_ieee;
  /// what a converter reads (Converter::source)
  std::optional<Format> source;
  /// finite and not zero
  std::optional<Value> scale;
  /// of Rounding::stochastic: element i takes random_bits(seed, i, random_bits)
  std::uint64_t seed = 0;
  /// 1 to 32
  int random_bits = 32;
  /// 0: all
  int threads = 0;
  /// elements done, now and then, from any thread, one at a time
  std::function<void(std::size_t done)> progress;
};

/// The options that follow a converter's row.
ConversionOptions options_of(const Converter& converter);

/// What happened to the elements. An element is out of range when it is infinite or its rounding,
/// had the exponent no limit, lies past the destination's largest number (or below zero, where
/// there is no sign).
struct ConversionSummary {
  std::uint64_t elements = 0;
  std::uint64_t nans_in = 0;
  /// from numbers other than zero
  std::uint64_t zeros_made = 0;
  /// from finite numbers
  std::uint64_t infinities_made = 0;
  /// from anything but NaN
  std::uint64_t nans_made = 0;
  /// out of range, and a finite number now
  std::uint64_t saturated = 0;
  /// results that are subnormal
  std::uint64_t subnormals_made = 0;
  /// results that differ from the number that was rounded
  std::uint64_t inexact = 0;
  /// zeros kept and finite numbers in range: what the errors are over
  std::uint64_t compared = 0;
  /// In units of the destination's last place at the exact number; each error exact to 2^-63 ulp,
  /// the sum exact.
  double max_ulp_error = 0;
  double mean_ulp_error = 0;

  friend bool operator==(const ConversionSummary&, const ConversionSummary&) = default;
};

/// The number that is rounded to the destination for an element of that value; `from` is the format
/// of the element, where it is one's.
Unrounded operand_of(const std::optional<Format>& from, const Value& value,
                     const ConversionOptions& options);

/// What an element of code `code` becomes. `random` is that of Rounding::stochastic.
std::uint64_t convert_code(const Format& from, std::uint64_t code, const Format& to,
                           const ConversionOptions& options, RandomBits random = {});

/// Throws Error for a scale that is zero, infinite or NaN.
void check(const ConversionOptions& options);

/// Exponent of the unit in which the format rounds a finite x, were its exponent unlimited above.
int unit_exponent(const Format& format, const Unrounded& x);

/// Does x round to a number of the format or zero, rather than past its largest number (or below
/// zero where there is no sign)? True for zero, false for infinity and NaN.
bool is_in_range(const Format& format, const Unrounded& x, Rounding rounding,
                 RandomBits random = {});

inline constexpr int error_bits = 63;

/// significand * 2^(exponent - unit) in 2^-error_bits, rounded down.
constexpr uint128 fixed_point(uint128 significand, int exponent, int unit) {
  const int shift = exponent - unit + error_bits;
  if (shift >= 0) return significand << shift;
  return shift <= -128 ? 0 : significand >> -shift;
}

/// |x - code| in units of the destination's last place at x, in 2^-63 ulp, rounded down.
/// Meaningful for a finite x in range, where it is at most 2^63.
std::uint64_t ulp_error(const Format& format, const Unrounded& x, std::uint64_t code);

}  // namespace guardbit::formats
