#pragma once

#include <cassert>
#include <cstdint>

#include "formats/format.hpp"
#include "formats/rounding.hpp"
#include "formats/value.hpp"

namespace guardbit::formats {

/// The number a code stands for. Bits above the format's width are ignored (a UE4M3 scale's sign
/// bit, say).
constexpr Value decode(const Format& f, std::uint64_t code) {
  code &= code_mask(f);
  const bool negative = (code & sign_mask(f)) != 0;
  const std::uint64_t magnitude = code & magnitude_mask(f);
  if (f.encoding == Encoding::integer) {
    const std::uint64_t absolute = negative ? (~code + 1) & code_mask(f) : code;
    return absolute == 0 ? zero_value(false) : Value{Kind::finite, negative, 0, absolute};
  }
  const std::uint64_t fraction = magnitude & fraction_mask(f);
  switch (f.specials) {
    case Specials::ieee:
      if (magnitude < infinity_code(f)) break;
      if (magnitude == infinity_code(f)) return infinity_value(negative);
      return {Kind::nan, negative, 0, fraction << (52 - f.fraction_bits)};
    case Specials::nan_all_ones:
      if (magnitude == magnitude_mask(f)) return nan_value(negative);
      break;
    case Specials::nan_negative_zero:
      if (negative && magnitude == 0) return nan_value(false);
      break;
    case Specials::none: break;
  }
  const auto biased_exponent = static_cast<int>(magnitude >> f.fraction_bits);
  if (biased_exponent == 0 && f.encoding == Encoding::floating) {
    if (fraction == 0 || !f.has_subnormals) return zero_value(negative);
    return {Kind::finite, negative, min_exponent(f) - f.fraction_bits, fraction};
  }
  return {Kind::finite, negative, biased_exponent - f.bias - f.fraction_bits,
          fraction | (std::uint64_t{1} << f.fraction_bits)};
}

/// Two's complement code of a magnitude, modulo 2^bits.
constexpr std::uint64_t integer_code(const Format& f, bool negative, std::uint64_t magnitude) {
  return (negative ? ~magnitude + 1 : magnitude) & code_mask(f);
}

/// Largest magnitude an integer format holds on that side of zero.
constexpr std::uint64_t integer_limit(const Format& f, bool negative) {
  if (!negative) return magnitude_mask(f);
  return f.has_sign ? magnitude_mask(f) + 1 : 0;
}

/// The code of a NaN under an overflow policy.
constexpr std::uint64_t encode_nan(const Format& f, const Value& nan, const Overflow& overflow) {
  if (!has_nan(f)) {
    switch (overflow.no_nan) {
      case Overflow::NoNan::maximum: return max_finite_code(f);
      case Overflow::NoNan::zero: return 0;
      case Overflow::NoNan::negative_zero: return has_negative_zero(f) ? sign_mask(f) : 0;
      case Overflow::NoNan::minimum: return sign_mask(f);
      case Overflow::NoNan::opposite_zero:
        return has_negative_zero(f) && !nan.negative ? sign_mask(f) : 0;
    }
  }
  const std::uint64_t sign =
      nan.negative && f.specials != Specials::nan_negative_zero ? sign_mask(f) : 0;
  switch (overflow.nan) {
    case Overflow::Nan::payload:
      if (f.specials != Specials::ieee) return quiet_nan_code(f) | sign;
      return quiet_nan_code(f) | sign |
             ((nan.significand >> (52 - f.fraction_bits)) & fraction_mask(f));
    case Overflow::Nan::quiet_signed: return quiet_nan_code(f) | sign;
    case Overflow::Nan::quiet: return quiet_nan_code(f);
    case Overflow::Nan::all_ones_signed: return all_ones_nan_code(f) | sign;
    case Overflow::Nan::all_ones:
    case Overflow::Nan::all_ones_of_nan: return all_ones_nan_code(f);
    case Overflow::Nan::cut:
    case Overflow::Nan::cut_then_below: {
      if (f.specials != Specials::ieee) return quiet_nan_code(f) | sign;
      const std::uint64_t cut =
          infinity_code(f) | ((nan.significand >> (52 - f.fraction_bits)) & fraction_mask(f));
      return sign | (overflow.nan == Overflow::Nan::cut ? cut : cut - 1);
    }
  }
  return quiet_nan_code(f);
}

/// The NaN that stands for a number of that sign which has no code.
constexpr std::uint64_t encode_overflow_nan(const Format& f, bool negative,
                                            const Overflow& overflow) {
  if (overflow.nan != Overflow::Nan::all_ones_of_nan)
    return encode_nan(f, nan_value(negative), overflow);
  return all_ones_nan_code(f) | (negative ? sign_mask(f) : 0);
}

/// The code of an infinity of that sign under an overflow policy.
constexpr std::uint64_t encode_infinity(const Format& f, bool negative, const Overflow& overflow) {
  if (f.encoding == Encoding::integer) return integer_code(f, negative, integer_limit(f, negative));
  if (negative && !f.has_sign) {
    // Nothing below zero: the smallest code when saturating, else NaN.
    return overflow.infinity == Overflow::Infinity::saturate ? 0
                                                             : encode_nan(f, nan_value(), overflow);
  }
  const std::uint64_t sign = negative ? sign_mask(f) : 0;
  if (overflow.infinity == Overflow::Infinity::saturate) return sign | max_finite_code(f);
  if (has_infinity(f)) return sign | infinity_code(f);
  return has_nan(f) ? encode_overflow_nan(f, negative, overflow) : sign | max_finite_code(f);
}

/// The code of a finite number past the largest one.
constexpr std::uint64_t encode_overflow(const Format& f, bool negative, Rounding rounding,
                                        const Overflow& overflow) {
  const std::uint64_t sign = negative ? sign_mask(f) : 0;
  const bool stops =
      overflow.finite == Overflow::Finite::saturate ||
      (overflow.finite == Overflow::Finite::infinity && overflow_stops_at_max(rounding, negative));
  if (stops) return sign | max_finite_code(f);
  if (has_infinity(f)) return sign | infinity_code(f);
  return has_nan(f) ? encode_overflow_nan(f, negative, overflow) : sign | max_finite_code(f);
}

constexpr std::uint64_t encode_integer(const Format& f, const Unrounded& x, Rounding rounding,
                                       const Overflow& overflow, RandomBits random) {
  const std::uint64_t limit = integer_limit(f, x.negative);
  // Past every integer format: no need to shift it there, but wrapping still asks for the low bits.
  const bool huge = x.exponent > 0 && leading_bit(x.significand) + x.exponent > 126;
  if (huge && overflow.finite != Overflow::Finite::wrap) return integer_code(f, x.negative, limit);
  if (huge && x.exponent > 127) return 0;
  const uint128 magnitude =
      shift_right_and_round(x.significand, -x.exponent, x.sticky, x.negative, rounding, random)
          .significand;
  if (magnitude > limit && overflow.finite != Overflow::Finite::wrap)
    return integer_code(f, x.negative, limit);
  return integer_code(f, x.negative, static_cast<std::uint64_t>(magnitude));
}

/// A finite nonzero number rounded once into a floating or power-of-two format.
constexpr std::uint64_t encode_finite(const Format& f, const Unrounded& x, Rounding rounding,
                                      const Overflow& overflow, RandomBits random) {
  const int top = x.exponent + leading_bit(x.significand);
  const int lowest = min_exponent(f);
  if (f.encoding == Encoding::power_of_two && top < lowest)
    return 0;  // no zero: the smallest power stands for it
  if (top > max_exponent(f) + 1) return encode_overflow(f, x.negative, rounding, overflow);
  // Unit of the result: below the normal range the subnormals' unit, or the smallest normal where
  // there are none.
  const bool below_normal = top < lowest;
  const int unit =
      below_normal ? (f.has_subnormals ? lowest - f.fraction_bits : lowest) : top - f.fraction_bits;
  const Rounded rounded = shift_right_and_round(x.significand, unit - x.exponent, x.sticky,
                                                x.negative, rounding, random);
  const auto kept = static_cast<std::uint64_t>(rounded.significand);
  // Adding the significand to the exponent field lets a rounding carry move into the exponent.
  std::uint64_t magnitude = 0;
  if (below_normal) {
    magnitude = f.has_subnormals ? kept : kept << f.fraction_bits;
  } else if (f.encoding == Encoding::power_of_two) {
    const bool in_gap =
        top == lowest && rounded.inexact && overflow.lowest_gap == Overflow::LowestGap::upward;
    const bool nearest = rounding == Rounding::nearest_even || rounding == Rounding::nearest_away;
    magnitude = static_cast<std::uint64_t>(top + f.bias) + (in_gap && nearest ? 1 : kept - 1);
  } else {
    magnitude = (static_cast<std::uint64_t>(top + f.bias - 1) << f.fraction_bits) + kept;
  }
  if (magnitude > max_finite_code(f)) return encode_overflow(f, x.negative, rounding, overflow);
  if (magnitude == 0 && !has_negative_zero(f)) return 0;
  return (x.negative ? sign_mask(f) : 0) | magnitude;
}

/// Rounds once into the format. Zero keeps its sign where the format has a negative zero.
constexpr std::uint64_t encode(const Format& f, Unrounded x,
                               Rounding rounding = Rounding::nearest_even,
                               const Overflow& overflow = {}, RandomBits random = {}) {
  if (!f.has_sign && overflow.negative == Overflow::Negative::magnitude) x.negative = false;
  switch (x.kind) {
    case Kind::nan:
      return encode_nan(f, {Kind::nan, x.negative, 0, static_cast<std::uint64_t>(x.significand)},
                        overflow);
    case Kind::infinity: return encode_infinity(f, x.negative, overflow);
    case Kind::zero:
      if (f.encoding == Encoding::power_of_two && overflow.no_zero == Overflow::NoZero::nan) {
        return encode_nan(f, nan_value(), overflow);
      }
      return x.negative && has_negative_zero(f) ? sign_mask(f) : 0;
    case Kind::finite: break;
  }
  if (f.encoding == Encoding::integer) return encode_integer(f, x, rounding, overflow, random);
  if (x.negative && !f.has_sign) {
    const bool saturates = overflow.finite == Overflow::Finite::saturate;
    return saturates || !has_nan(f) ? 0 : encode_nan(f, nan_value(), overflow);
  }
  return encode_finite(f, x, rounding, overflow, random);
}

constexpr std::uint64_t encode(const Format& f, const Value& v,
                               Rounding rounding = Rounding::nearest_even,
                               const Overflow& overflow = {}, RandomBits random = {}) {
  return encode(f, exactly(v), rounding, overflow, random);
}

/// Decodes and encodes: one conversion of one code.
constexpr std::uint64_t convert(const Format& from, std::uint64_t code, const Format& to,
                                Rounding rounding = Rounding::nearest_even,
                                const Overflow& overflow = {}, RandomBits random = {}) {
  return encode(to, decode(from, code), rounding, overflow, random);
}

}  // namespace guardbit::formats
