#include "formats/conversion/kernels/conversion_plan.hpp"

#include <algorithm>
#include <cassert>

#include "formats/codec.hpp"
#include "formats/format_catalogue.hpp"

namespace guardbit::formats::kernels {

namespace {

constexpr int fp32_fraction = 23;
constexpr std::uint32_t all_ones = ~std::uint32_t{0};
constexpr std::uint32_t fp32_infinity = 0x7F800000;
constexpr std::uint32_t fp32_quiet_nan = 0x7FC00000;

constexpr std::uint32_t word(std::uint64_t code) { return static_cast<std::uint32_t>(code); }
constexpr std::uint32_t word(int number) { return static_cast<std::uint32_t>(number); }

RoundingClass class_of(Rounding rounding) {
  switch (rounding) {
    case Rounding::nearest_even: return RoundingClass::nearest_even;
    case Rounding::toward_zero: return RoundingClass::toward_zero;
    case Rounding::stochastic: return RoundingClass::stochastic;
    case Rounding::nearest_away:
    case Rounding::upward:
    case Rounding::downward:
    case Rounding::to_odd: break;
  }
  return RoundingClass::directed;
}

Signs signs_of(const Format& f) {
  if (!f.has_sign) return Signs::none;
  if (is_integer(f)) return Signs::complement;
  return has_negative_zero(f) ? Signs::bit : Signs::bit_not_zero;
}

bool has_narrowing(const Format& f, const Overflow& overflow) {
  if (is_integer(f)) return bits(f) <= 16 && overflow.finite != Overflow::Finite::wrap;
  return f.encoding == Encoding::floating && f.has_subnormals && f.fraction_bits <= fp32_fraction &&
         bits(f) <= 32;
}

/// The codes of what is no number of the format, from the reference.
void set_exceptions(Narrowing& plan, const Format& to, Rounding rounding,
                    const Overflow& overflow) {
  const bool drops_sign = !to.has_sign && overflow.negative == Overflow::Negative::magnitude;
  plan.read_mask = drops_sign ? 0x7FFFFFFF : all_ones;
  for (const bool sign : {false, true}) {
    const bool negative = sign && !drops_sign;
    const std::uint64_t limit = is_integer(to) ? integer_limit(to, negative) : max_finite_code(to);
    plan.largest[sign] = word(limit);
    plan.overflow[sign] = word(is_integer(to) ? integer_code(to, negative, limit)
                                              : encode_overflow(to, negative, rounding, overflow));
    plan.infinity[sign] = word(encode_infinity(to, negative, overflow));
    // Without payload; the payload is added to it, below.
    plan.nan[sign] = word(encode_nan(to, {Kind::nan, negative, 0, 0}, overflow));
  }
  if (to.specials == Specials::ieee && has_nan(to)) {
    const std::uint64_t fraction = fraction_mask(to);
    if (overflow.nan == Overflow::Nan::payload) plan.payload_mask = word(fraction >> 1);
    if (overflow.nan == Overflow::Nan::cut || overflow.nan == Overflow::Nan::cut_then_below)
      plan.payload_mask = word(fraction);
  }
  if (!to.has_sign && !drops_sign) {
    const bool saturates =
        is_integer(to) || overflow.finite == Overflow::Finite::saturate || !has_nan(to);
    plan.negative_is_exceptional = 0x80000000;
    plan.negative_finite = saturates ? 0 : word(encode_nan(to, nan_value(), overflow));
  }
}

void set_rounding(Narrowing& plan, Rounding rounding, int random_bits) {
  plan.rounding = class_of(rounding);
  plan.add_half = rounding == Rounding::nearest_away ? all_ones : 0;
  plan.by_sign = rounding == Rounding::upward || rounding == Rounding::downward ? all_ones : 0;
  plan.flip_sign = rounding == Rounding::upward ? all_ones : 0;
  plan.to_odd = rounding == Rounding::to_odd ? all_ones : 0;
  plan.random_mask = all_ones << (32 - std::clamp(random_bits, 1, 32));
}

/// The exponent field of FP32 numbers below which the destination's unit does not shrink. Scaling
/// by 2^k moves that, and nothing else: x * 2^k has the code of x in the format whose bias is k
/// larger. An integer format is all subnormals, in units of 1.
int lowest_field(const Format& to, int scale_exponent) {
  return (is_integer(to) ? 127 + fp32_fraction : min_exponent(to) + 127) - scale_exponent;
}

}  // namespace

bool tiny_vanishes(const Narrowing& plan, int lowest) {
  const int lowest_shift = static_cast<int>(plan.shift) + lowest;
  switch (plan.rounding) {
    case RoundingClass::nearest_even:
    case RoundingClass::toward_zero: return lowest >= 0 && lowest_shift >= 25;
    case RoundingClass::stochastic: return lowest >= 0 && lowest_shift >= 32 + 24;
    case RoundingClass::directed: break;
  }
  return false;
}

Narrowing raised(const Narrowing& plan) {
  Narrowing result = plan;
  if (plan.alignment == Alignment::any) return result;
  result.alignment = Alignment::any;
  result.shift += 1;  // the kernel doubles the significand, so that there is a bit below every unit
  result.lowest += raised_field;
  if (plan.offset_lowest == plan.lowest) result.offset_lowest = result.lowest;
  return result;
}

std::optional<Narrowing> narrowing(const Format& to, Rounding rounding, const Overflow& overflow,
                                   int scale_exponent, int random_bits) {
  if (!has_narrowing(to, overflow)) return std::nullopt;
  const int lowest = lowest_field(to, scale_exponent);
  if (lowest > 255 || lowest + raised_field < 0) return std::nullopt;

  Narrowing plan;
  set_rounding(plan, rounding, random_bits);
  set_exceptions(plan, to, rounding, overflow);
  plan.signs = signs_of(to);
  plan.container = container_bits(to);
  plan.container_shift = word(container_shift(to));
  plan.code_mask = word(code_mask(to));
  plan.sign_mask = word(sign_mask(to));
  plan.sign_shift = word(32 - bits(to));
  plan.fraction_bits = is_integer(to) ? 0 : word(to.fraction_bits);

  const int shift = is_integer(to) ? 0 : fp32_fraction - to.fraction_bits;
  plan.shift = word(shift);
  plan.lowest = word(lowest);
  plan.offset_lowest = is_integer(to) ? 0xFFFF : plan.lowest;
  plan.alignment = Alignment::tiny_vanish;
  if (!is_integer(to) && lowest == 1) {
    plan.alignment = Alignment::same_exponents;
    if (shift == 0) plan.rounding = RoundingClass::toward_zero;  // exact: there is nothing to round
  } else if (!tiny_vanishes(plan, lowest) || (shift == 0 && !is_integer(to))) {
    plan = raised(plan);
  }

  // What the kernel makes of FP32's infinity: NaNs give at least as much, finite numbers at most.
  const std::uint64_t of_infinity = is_integer(to) ? std::uint64_t{1} << fp32_fraction
                                                   : static_cast<std::uint64_t>(256 - lowest)
                                                         << to.fraction_bits;
  const std::uint64_t past_largest = std::uint64_t{std::min(plan.largest[0], plan.largest[1])} + 1;
  plan.first_exceptional = word(std::min(of_infinity, past_largest));
  return plan;
}

Counting counting(const Format& to, int scale_exponent) {
  Counting plan;
  plan.container = container_bits(to);
  plan.container_shift = word(container_shift(to));
  plan.code_mask = word(code_mask(to));
  plan.magnitude_mask = is_integer(to) ? plan.code_mask : word(magnitude_mask(to));
  plan.sign_shift = word(32 - bits(to));
  plan.complement = is_integer(to) && to.has_sign ? all_ones : 0;
  plan.least_normal = word(min_normal_code(to));
  plan.infinity = has_infinity(to) ? word(infinity_code(to)) : all_ones;
  plan.first_nan = all_ones;
  plan.lone_nan = all_ones;
  if (has_infinity(to)) {
    plan.first_nan = plan.infinity + 1;
  } else if (to.specials == Specials::nan_all_ones) {
    plan.first_nan = plan.magnitude_mask;
  } else if (to.specials == Specials::nan_negative_zero) {
    plan.lone_nan = word(sign_mask(to));
  }
  plan.shift = is_integer(to) ? 0 : word(fp32_fraction - to.fraction_bits);
  plan.lowest = word(lowest_field(to, scale_exponent) + raised_field);
  plan.offset_lowest = is_integer(to) ? 0xFFFF : plan.lowest;
  plan.fraction_bits = is_integer(to) ? 0 : word(to.fraction_bits);
  return plan;
}

std::optional<Widening> widening(const Format& from) {
  if (bits(from) > 32) return std::nullopt;
  Widening plan;
  plan.container = container_bits(from);
  plan.container_shift = word(container_shift(from));
  plan.code_mask = word(code_mask(from));
  plan.sign_mask = word(sign_mask(from));
  plan.sign_shift = word(32 - bits(from));
  plan.lone_nan = all_ones;
  if (is_integer(from)) {
    plan.kind = Widening::Kind::integer;
    return bits(from) <= 16 ? std::optional(plan) : std::nullopt;
  }
  if (from.encoding != Encoding::floating || !from.has_subnormals ||
      from.fraction_bits > fp32_fraction)
    return std::nullopt;
  const int fraction_shift = fp32_fraction - from.fraction_bits;
  plan.fraction_shift = word(fraction_shift);
  if (from.has_sign && from.specials == Specials::ieee &&
      from.exponent_bits == fp32.exponent_bits && from.bias == fp32.bias) {
    plan.kind = Widening::Kind::shifted;
    return plan;
  }
  const int smallest = min_exponent(from) - from.fraction_bits;
  if (smallest < -126 || max_exponent(from) > 127) return std::nullopt;
  plan.kind = Widening::Kind::floating;
  plan.least_normal = word(min_normal_code(from));
  plan.exponent_offset = word((127 - from.bias) * (1 << fp32_fraction));
  plan.subnormal_offset = word(smallest * (1 << fp32_fraction));
  plan.first_special = all_ones;
  if (from.specials == Specials::nan_negative_zero) plan.lone_nan = word(sign_mask(from));
  if (from.specials == Specials::nan_all_ones || has_infinity(from)) {
    const std::uint32_t first =
        word(has_infinity(from) ? infinity_code(from) : magnitude_mask(from));
    plan.first_special = first;
    plan.special_offset =
        (has_infinity(from) ? fp32_infinity : fp32_quiet_nan) - (first << fraction_shift);
  }
  return plan;
}

Multiplication multiplication(const Value& factor) {
  constexpr int far = 1000;  // every product is zero or infinity long before
  Multiplication plan = odd_multiplication(factor);
  const int exponent = factor.exponent + leading_bit(factor.significand) + 1;
  plan.lowest -= word(std::clamp(exponent, -far, far));
  plan.nearest = true;
  return plan;
}

Multiplication odd_multiplication(const Value& factor) {
  assert(factor.kind == Kind::finite);
  constexpr int middle = 1024;  // of the fields, none of which may be negative
  const std::uint64_t significand = factor.significand << (63 - leading_bit(factor.significand));
  Multiplication plan;
  plan.high = word(significand >> 32);
  plan.low = word(significand & 0xFFFFFFFF);
  plan.field_offset = word(middle - raised_field);
  plan.lowest = word(middle + 1);
  plan.negates = factor.negative ? 0x80000000 : 0;
  return plan;
}

bool keeps_odd_products(const Format& to, int scale_exponent) {
  if (is_integer(to)) return true;
  const int unit = min_exponent(to) - to.fraction_bits - scale_exponent;
  return to.fraction_bits <= 21 && unit >= -147;
}

}  // namespace guardbit::formats::kernels
