#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "formats/format.hpp"
#include "formats/rounding.hpp"
#include "formats/value.hpp"

// A conversion between a narrow format and FP32 as data: what the array kernels need to know about
// a format, an overflow policy and a rounding, so that no kernel knows any of them by name. Every
// path between two formats goes through FP32 words, which hold every number of every narrow format.
namespace guardbit::formats::kernels {

/// How the significands of FP32 numbers meet the unit of the destination.
enum class Alignment : std::uint8_t {
  /// both formats have the same smallest normal number: one shift for all
  same_exponents,
  /// FP32's subnormals round to zero, so their hidden bit may be taken for one
  tiny_vanish,
  any,
};

enum class RoundingClass : std::uint8_t { nearest_even, toward_zero, directed, stochastic };

/// How the destination writes a sign.
enum class Signs : std::uint8_t {
  /// a sign bit, for zero too
  bit,
  /// a sign bit, but zero has none ("fnuz")
  bit_not_zero,
  /// two's complement
  complement,
  none,
};

/// Fields of FP32 exponents are raised by this much where subnormals are normalised, so that none
/// is below zero.
inline constexpr int raised_field = 24;

/// FP32 words, times a power of two, to codes of a format. Arrays of two are by sign.
struct Narrowing {
  Alignment alignment = Alignment::any;
  RoundingClass rounding = RoundingClass::nearest_even;
  Signs signs = Signs::bit;
  /// 8, 16 or 32 bits
  int container = 0;
  std::uint32_t container_shift = 0;

  // A number whose exponent field is e has `shift` + max(lowest - e, 0) bits below the unit of the
  // result, and its code begins (e - offset_lowest) binades above the subnormals (0 for integers).
  std::uint32_t shift = 0;
  std::uint32_t lowest = 0;
  std::uint32_t offset_lowest = 0;
  std::uint32_t fraction_bits = 0;

  // RoundingClass::directed: masks of which bits below the unit are added as ones.
  std::uint32_t add_half = 0;
  std::uint32_t by_sign = 0;
  std::uint32_t flip_sign = 0;
  std::uint32_t to_odd = 0;
  /// of the top bits that a random word lends
  std::uint32_t random_mask = 0;

  std::uint32_t code_mask = 0;
  std::uint32_t sign_mask = 0;
  /// from bit 31 to the sign bit
  std::uint32_t sign_shift = 0;

  /// Magnitudes from here on are looked at again: overflow, infinity, NaN.
  std::uint32_t first_exceptional = 0;
  /// Signs::none: of the word, without bit 31 where
  /// magnitudes are taken
  std::uint32_t read_mask = 0;
  /// Signs::none: bit 31 when it is
  std::uint32_t negative_is_exceptional = 0;
  /// Signs::none: the code of a number below zero
  std::uint32_t negative_finite = 0;
  /// magnitude
  std::array<std::uint32_t, 2> largest{};
  std::array<std::uint32_t, 2> overflow{};
  std::array<std::uint32_t, 2> infinity{};
  /// plus the leading fraction bits that payload_mask keeps
  std::array<std::uint32_t, 2> nan{};
  std::uint32_t payload_mask = 0;
};

/// The narrowing of x * 2^scale_exponent, or nothing where the kernels have none: fractions beyond
/// FP32's, formats without subnormals or zero, wrapping integers or ones past 16 bits, exponents
/// far from FP32's. `random_bits` as in ConversionOptions.
std::optional<Narrowing> narrowing(const Format& to, Rounding rounding, const Overflow& overflow,
                                   int scale_exponent, int random_bits);

/// What tells, of an FP32 word and the code that a Narrowing made of it, how they differ. Arrays of
/// two are by sign.
struct Counting {
  int container = 0;
  std::uint32_t container_shift = 0;
  std::uint32_t code_mask = 0;
  std::uint32_t magnitude_mask = 0;
  /// from the sign bit to bit 31
  std::uint32_t sign_shift = 0;
  /// all ones where codes are two's complement
  std::uint32_t complement = 0;
  std::uint32_t least_normal = 0;
  /// magnitude code; ~0 for none
  std::uint32_t infinity = 0;
  /// magnitude code; ~0 for none
  std::uint32_t first_nan = 0;
  /// code; ~0 for none
  std::uint32_t lone_nan = 0;

  // As in a Narrowing of raised fields, but for significands that are not doubled.
  std::uint32_t shift = 0;
  std::uint32_t lowest = 0;
  std::uint32_t offset_lowest = 0;
  std::uint32_t fraction_bits = 0;
  /// 0 where nothing is random
  std::uint32_t random_mask = 0;

  // Magnitudes of words.
  /// from here on numbers may be out of range
  std::uint32_t first_exceptional = 0;
  /// from here on they are, whatever the random bits
  std::array<std::uint32_t, 2> past{};
  /// magnitude code, from which random bits may lift one
  std::array<std::uint32_t, 2> largest{};
};

/// The counting for narrowing(to, ..., scale_exponent, ...), but for the last four members, which
/// the rounding says.
Counting counting(const Format& to, int scale_exponent);

/// The same narrowing with Alignment::any.
Narrowing raised(const Narrowing& plan);

/// May FP32's subnormals be read with a hidden bit, where the exponent field of the destination's
/// smallest normal number is `lowest`? They may where even so they lie so far below the unit that
/// nothing carries out of them: below half of it in the nearest modes, and under random bits where
/// the 32 bits below the unit are all zero.
bool tiny_vanishes(const Narrowing& plan, int lowest);

/// Codes of at most 32 bits to the FP32 words of the same numbers. NaNs keep sign and payload.
struct Widening {
  enum class Kind : std::uint8_t {
    /// FP32 cut short: the code is the top of the word
    shifted,
    /// everything in FP32's normal range
    floating,
    integer,
  };
  Kind kind = Kind::shifted;
  int container = 0;
  std::uint32_t container_shift = 0;
  std::uint32_t code_mask = 0;
  std::uint32_t sign_mask = 0;
  std::uint32_t sign_shift = 0;
  std::uint32_t fraction_shift = 0;
  /// magnitude code
  std::uint32_t least_normal = 0;
  /// from the shifted code of a normal number
  std::uint32_t exponent_offset = 0;
  /// from the FP32 word of the fraction as an integer
  std::uint32_t subnormal_offset = 0;
  /// magnitude code of infinity, or of the first NaN
  std::uint32_t first_special = 0;
  std::uint32_t special_offset = 0;
  /// a code that is NaN with its sign bit; ~0 for none
  std::uint32_t lone_nan = 0;
};

/// The widening, or nothing where FP32 does not hold all the format's numbers (or holds some as
/// subnormals without having the same smallest normal).
std::optional<Widening> widening(const Format& from);

/// FP32 words times a number, as FP32 words. NaNs stay as they are.
struct Multiplication {
  // The number is (high * 2^32 + low) * 2^(exponent - 64), the top bit of `high` set; the exponent
  // is in the difference of these two.
  std::uint32_t high = 0;
  std::uint32_t low = 0;
  /// to raised fields
  std::uint32_t field_offset = 0;
  /// raised field of the products' smallest normal number
  std::uint32_t lowest = 0;
  /// bit 31 when the number is below zero
  std::uint32_t negates = 0;
  /// to nearest even, else to odd
  bool nearest = false;
};

/// Products rounded to nearest even.
Multiplication multiplication(const Value& factor);

/// Products with a number's significand alone, as a factor of at least 1/2 and below 1, and its
/// sign, rounded to odd: none overflows.
Multiplication odd_multiplication(const Value& factor);

/// Does rounding products of odd_multiplication, times 2^scale_exponent, to the format give what
/// rounding the exact ones does? A result rounded to odd says of the exact one on which side of
/// every number of two bits less it lies, so it must keep two bits below the destination's unit:
/// FP32 has 24 in a normal number, and below 2^-126 units of 2^-149.
bool keeps_odd_products(const Format& to, int scale_exponent);

}  // namespace guardbit::formats::kernels
