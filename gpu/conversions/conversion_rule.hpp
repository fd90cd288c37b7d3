#pragma once

#include <cstdint>

#include "formats/codec.hpp"
#include "formats/rounding.hpp"

// The model of PTX `cvt`: what a form does to an element.
namespace guardbit::gpu {

/// What one form of PTX `cvt` does to each element; conversion_form() derives it from the name.
struct ConversionRule {
  formats::Format source, destination;
  formats::Rounding rounding = formats::Rounding::nearest_even;
  formats::Overflow overflow;
  /// of the destination register
  int elements = 1;
  /// .rni, .rzi, .rmi, .rpi to a floating format
  bool integral = false;
  /// numbers below zero become +0, a NaN the canonical one
  bool relu = false;
  /// .sat to a floating format: to [+0, 1], a NaN becomes +0
  bool clamp = false;
  /// .ftz: subnormal sources become zeros of their sign
  bool flush_source = false;
  /// .ftz from FP64: so do results that are tiny after rounding
  bool flush_result = false;
  /// what a NaN becomes in an integer format
  std::uint64_t nan_code = 0;

  friend constexpr bool operator==(const ConversionRule&, const ConversionRule&) = default;
};

/// The number as .ftz reads it. The flush is an addition or multiplication, which gives the
/// canonical NaN.
constexpr formats::Value flushed(const formats::Format& f, const formats::Value& v) {
  if (v.kind == formats::Kind::nan)
    return {v.kind, false, 0, formats::fraction_mask(f) << (52 - f.fraction_bits)};
  const bool subnormal =
      v.kind == formats::Kind::finite && formats::leading_bit(v.significand) < f.fraction_bits;
  return subnormal ? formats::zero_value(v.negative) : v;
}

/// max(x, +0), but a NaN stays.
constexpr formats::Value rectified(const formats::Value& v) {
  return v.negative && v.kind != formats::Kind::nan ? formats::zero_value(false) : v;
}

/// min(max(x, +0), 1), and +0 for a NaN.
constexpr formats::Value clamped(const formats::Value& v) {
  if (v.negative || v.kind == formats::Kind::nan || v.kind == formats::Kind::zero)
    return formats::zero_value(false);
  if (v.kind == formats::Kind::infinity || formats::leading_bit(v.significand) + v.exponent >= 0)
    return {formats::Kind::finite, false, 0, 1};
  return v;
}

/// The nearest integer in the direction of the rounding; a zero keeps the sign of the number.
constexpr formats::Value rounded_to_integer(const formats::Value& v, formats::Rounding rounding) {
  if (v.kind != formats::Kind::finite || v.exponent >= 0) return v;
  const auto magnitude = static_cast<std::uint64_t>(
      formats::shift_right_and_round(v.significand, -v.exponent, false, v.negative, rounding)
          .significand);
  if (magnitude == 0) return formats::zero_value(v.negative);
  return {formats::Kind::finite, v.negative, 0, magnitude};
}

/// Is the number, rounded with an exponent that has no lower bound, below the smallest normal one?
constexpr bool tiny_after_rounding(const formats::Format& f, const formats::Value& v,
                                   formats::Rounding rounding) {
  if (v.kind != formats::Kind::finite) return false;
  const formats::Format wide = formats::floating(15, f.fraction_bits);
  const formats::Value rounded = formats::decode(wide, formats::encode(wide, v, rounding));
  return formats::leading_bit(rounded.significand) + rounded.exponent < formats::min_exponent(f);
}

/// One element: code to code. `code` may have bits above the source format's width.
constexpr std::uint64_t convert_element(const ConversionRule& rule, std::uint64_t code) {
  formats::Value v = formats::decode(rule.source, code);
  if (rule.flush_source) v = flushed(rule.source, v);
  if (rule.relu) v = rectified(v);
  if (rule.clamp) v = clamped(v);
  if (v.kind == formats::Kind::nan && formats::is_integer(rule.destination)) return rule.nan_code;
  if (rule.integral) v = rounded_to_integer(v, rule.rounding);
  if (rule.flush_result && tiny_after_rounding(rule.destination, v, rule.rounding))
    v = formats::zero_value(v.negative);
  return formats::encode(rule.destination, v, rule.rounding, rule.overflow);
}

}  // namespace guardbit::gpu
