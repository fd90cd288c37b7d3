#include "formats/conversion/conversion.hpp"

#include <cassert>

#include "formats/arithmetic.hpp"
#include "formats/codec.hpp"
#include "formats/support/error.hpp"

namespace guardbit::formats {

void check(const ConversionOptions& options) {
  if (options.scale && options.scale->kind != Kind::finite) {
    throw Error("scale", "a conversion scales by a finite number other than zero");
  }
  assert(options.random_bits >= 1 && options.random_bits <= 32);
}

Unrounded operand_of(const std::optional<Format>& from, const Value& value,
                     const ConversionOptions& options) {
  const Unrounded x =
      options.scale && value.kind != Kind::nan ? multiply(value, *options.scale) : exactly(value);
  const bool reads_source = options.source && (options.source != from || options.scale);
  return reads_source ? exactly(as_source(*options.source, x)) : x;
}

std::uint64_t convert_code(const Format& from, std::uint64_t code, const Format& to,
                           const ConversionOptions& options, RandomBits random) {
  return encode(to, operand_of(from, decode(from, code), options), options.rounding,
                options.overflow, random);
}

int unit_exponent(const Format& f, const Unrounded& x) {
  if (is_integer(f) || x.kind != Kind::finite)
    return is_integer(f) ? 0 : min_exponent(f) - f.fraction_bits;
  const int top = x.exponent + leading_bit(x.significand);
  const int lowest = min_exponent(f);
  if (top >= lowest) return top - f.fraction_bits;
  return f.has_subnormals || f.encoding == Encoding::power_of_two ? lowest - f.fraction_bits
                                                                  : lowest;
}

bool is_in_range(const Format& f, const Unrounded& x, Rounding rounding, RandomBits random) {
  if (x.kind != Kind::finite) return x.kind == Kind::zero;
  if (x.negative && !f.has_sign && !is_integer(f)) return false;
  const int top = x.exponent + leading_bit(x.significand);
  if (is_integer(f)) {
    return top <= 64 &&
           shift_right_and_round(x.significand, -x.exponent, x.sticky, x.negative, rounding, random)
                   .significand <= integer_limit(f, x.negative);
  }
  if (top != max_exponent(f)) return top < max_exponent(f);
  const int shift = top - f.fraction_bits - x.exponent;
  return shift_right_and_round(x.significand, shift, x.sticky, x.negative, rounding, random)
             .significand <= decode(f, max_finite_code(f)).significand;
}

std::uint64_t ulp_error(const Format& format, const Unrounded& x, std::uint64_t code) {
  const int unit = unit_exponent(format, x);
  const Value y = decode(format, code);
  const uint128 exact = fixed_point(x.significand, x.exponent, unit);
  const uint128 result = y.kind == Kind::zero ? 0 : fixed_point(y.significand, y.exponent, unit);
  return static_cast<std::uint64_t>(exact > result ? exact - result : result - exact);
}

ConversionOptions options_of(const Converter& converter) {
  ConversionOptions options;
  options.rounding = converter.rounding;
  options.overflow = converter.overflow;
  options.source = converter.source;
  if (converter.random_bits != 0) options.random_bits = converter.random_bits;
  return options;
}

}  // namespace guardbit::formats
