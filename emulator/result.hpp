#pragma once

// What goes into a sum and what comes out of it: input decoding, infinities and NaNs, and the final
// conversion.

#include <cstdint>

#include "emulator/accumulator.hpp"
#include "formats/arithmetic.hpp"
#include "formats/codec.hpp"

namespace guardbit::emulator {

using formats::Format;
using formats::Kind;
using formats::Unrounded;
using formats::Value;

/// Decodes an input operand; a unit that flushes takes subnormals as +0.
constexpr Value decode_input(const AccumulatorSpec& spec, const Format& f, std::uint64_t code) {
  const Value v = formats::decode(f, code);
  const bool subnormal = f.encoding == formats::Encoding::floating && v.kind == Kind::finite &&
                         (v.significand >> f.fraction_bits) == 0;
  return subnormal && spec.input == Subnormals::flush ? formats::zero_value(false) : v;
}

/// An integer multiple of 2^unit as a number ready to be rounded.
constexpr Unrounded fixed_point(std::int64_t sum, int unit) {
  if (sum == 0) return {};
  const bool negative = sum < 0;
  const auto magnitude =
      negative ? -static_cast<std::uint64_t>(sum) : static_cast<std::uint64_t>(sum);
  return {Kind::finite, negative, unit, magnitude, false};
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

/// The final conversion of a block into the result format.
constexpr std::uint64_t encode_result(const AccumulatorSpec& spec, const Format& format,
                                      const Unrounded& sum) {
  if (sum.kind == Kind::nan && spec.nan == NanPolicy::all_ones)
    return formats::all_ones_nan_code(format);
  const bool is_chain =
      spec.summation == Summation::fma_chain || spec.summation == Summation::pairwise;
  const formats::Overflow overflow = result_overflow(is_chain);
  Format kept = format;
  if (spec.result_fraction_bits != 0) kept.fraction_bits = spec.result_fraction_bits;
  std::uint64_t code = formats::encode(kept, sum, spec.result, overflow)
                       << (format.fraction_bits - kept.fraction_bits);
  const bool flushed = spec.output == Subnormals::flush &&
                       (code & formats::magnitude_mask(format)) < formats::min_normal_code(format);
  if (flushed) code &= formats::sign_mask(format);
  if (sum.kind == Kind::finite && code == formats::sign_mask(format) &&
      spec.underflowed_sum == ZeroSign::positive && !is_chain) {
    code = 0;
  }
  return code;
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
