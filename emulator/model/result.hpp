#pragma once

// What goes into a sum and what comes out of it: input decoding, infinities and NaNs, and the final
// conversion.

#include <cstdint>
#include <initializer_list>

#include "emulator/model/accumulator.hpp"
#include "formats/arithmetic.hpp"
#include "formats/codec.hpp"

namespace guardbit::emulator {

using formats::Format;
using formats::Kind;
using formats::Unrounded;
using formats::Value;

/// Decodes an input operand; a unit that flushes takes subnormals as zero.
constexpr Value decode_input(const AccumulatorSpec& spec, const Format& f, std::uint64_t code) {
  const Value v = formats::decode(f, code);
  const bool subnormal = f.encoding == formats::Encoding::floating && v.kind == Kind::finite &&
                         (v.significand >> f.fraction_bits) == 0;
  if (!subnormal || spec.input == Subnormals::keep) return v;
  return formats::zero_value(v.negative && spec.input == Subnormals::daz_ftz);
}

/// An integer multiple of 2^exponent as a number ready to be rounded.
constexpr Unrounded fixed_point(std::int64_t sum, int exponent) {
  if (sum == 0) return {};
  const bool negative = sum < 0;
  const auto magnitude =
      negative ? -static_cast<std::uint64_t>(sum) : static_cast<std::uint64_t>(sum);
  return {Kind::finite, negative, exponent, magnitude, false};
}

/// What the final conversion makes of numbers that do not fit. A matrix unit overflows to infinity
/// whatever the rounding (NUMERICS 1.4) and its NaN is canonical; the IEEE arithmetic of the FMA
/// chains obeys the rounding and keeps NaN payloads. A function and no pair of constants: device
/// code that chooses between constants of namespace scope traps (nvcc 13.0).
constexpr formats::Overflow result_overflow(bool is_chain) {
  if (is_chain) return {};
  formats::Overflow overflow;
  overflow.finite = formats::Overflow::Finite::infinity_always;
  overflow.nan = formats::Overflow::Nan::all_ones;
  return overflow;
}

/// Is a finite sum tiny after rounding (IEEE 754-2019 7.5): below the smallest normal number when
/// rounded as though exponents had no bounds?
constexpr bool is_tiny_after_rounding(const Format& f, const Unrounded& sum, Rounding rounding) {
  const int leading = formats::leading_bit(sum.significand);
  const int below = formats::min_exponent(f) - (leading + sum.exponent);
  if (below != 1) return below > 1;
  const formats::Rounded rounded = formats::shift_right_and_round(
      sum.significand, leading - f.fraction_bits, sum.sticky, sum.negative, rounding);
  return formats::leading_bit(rounded.significand) == f.fraction_bits;
}

/// Does a unit that flushes turn the sum, whose code in `kept` is given, into a zero?
constexpr bool is_flushed(const AccumulatorSpec& spec, const Format& kept, const Unrounded& sum,
                          std::uint64_t code) {
  switch (spec.output) {
    case Subnormals::keep: return false;
    case Subnormals::flush:
      return (code & formats::magnitude_mask(kept)) < formats::min_normal_code(kept);
    case Subnormals::daz_ftz:
      return sum.kind == Kind::finite && is_tiny_after_rounding(kept, sum, spec.result);
  }
  return false;
}

/// The NaN of an operation whose operands decide its sign and payload: a quieted copy of the first
/// that is a NaN, else, of an invalid operation, the negative quiet NaN.
constexpr Unrounded operand_nan(std::initializer_list<const Value*> order) {
  for (const Value* const x : order) {
    if (x->kind == Kind::nan)
      return {Kind::nan, x->negative, 0, x->significand | formats::quiet_bit, false};
  }
  return formats::exactly(formats::nan_value(true));
}

/// True if a NaN has a sign and a payload that special_value chose, which the conversion keeps.
constexpr bool has_chosen_nan(const AccumulatorSpec& spec) {
  return (spec.summation == Summation::two_grids || spec.summation == Summation::two_stage) &&
         (spec.nan == NanPolicy::products_addend || spec.nan == NanPolicy::products_alike);
}

/// The final conversion of a block into the result format. Not inlined: the model calls it from
/// many places, and nvcc would take minutes over the copies.
[[gnu::noinline]] constexpr std::uint64_t encode_result(const AccumulatorSpec& spec,
                                                        const Format& format,
                                                        const Unrounded& sum) {
  if (sum.kind == Kind::nan && spec.nan == NanPolicy::all_ones)
    return formats::all_ones_nan_code(format);
  if (sum.kind == Kind::nan && has_chosen_nan(spec)) return formats::encode(format, sum);
  const bool is_chain =
      spec.summation == Summation::fma_chain || spec.summation == Summation::pairwise;
  const formats::Overflow overflow = result_overflow(is_chain);
  Format kept = format;
  if (spec.result_fraction_bits != 0) kept.fraction_bits = spec.result_fraction_bits;
  std::uint64_t code = formats::encode(kept, sum, spec.result, overflow);
  if (is_flushed(spec, kept, sum, code)) code &= formats::sign_mask(kept);
  if (sum.kind == Kind::finite && code == formats::sign_mask(kept) &&
      spec.underflowed_sum == ZeroSign::positive && !is_chain) {
    code = 0;
  }
  const int missing = format.fraction_bits - kept.fraction_bits;
  return missing >= 0 ? code << missing : code >> -missing;
}

/// The infinities and NaNs among the summands seen, and, if any, what they make of the sum.
struct SpecialSum {
  bool nan = false, positive_infinity = false, negative_infinity = false;

  constexpr void include(const Unrounded& x) {
    nan = nan || x.kind == Kind::nan;
    positive_infinity = positive_infinity || (x.kind == Kind::infinity && !x.negative);
    negative_infinity = negative_infinity || (x.kind == Kind::infinity && x.negative);
  }
  constexpr bool any() const { return nan || positive_infinity || negative_infinity; }
  constexpr Unrounded value() const {
    if (nan || (positive_infinity && negative_infinity))
      return formats::exactly(formats::nan_value());
    return formats::exactly(formats::infinity_value(negative_infinity));
  }
};

}  // namespace guardbit::emulator
