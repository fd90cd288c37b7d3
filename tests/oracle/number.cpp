#include "tests/oracle/number.hpp"

#include <algorithm>

namespace guardbit::oracle {
namespace {

using Kind = FormatParameters::Kind;
using Specials = FormatParameters::Specials;

std::uint64_t ones(int count) {
  return count >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1;
}

/// The code without its sign.
std::uint64_t magnitude_code(const FormatParameters& format, std::uint64_t code) {
  return code & ones(format.exponent_bits + format.fraction_bits);
}

bool sign_of(const FormatParameters& format, std::uint64_t code) {
  return format.has_sign && ((code >> (format.bits - 1)) & 1) != 0;
}

Number decode_integer(const FormatParameters& format, std::uint64_t code) {
  const Integer unsigned_value = code & ones(format.bits);
  if (!sign_of(format, code)) return {Number::Kind::finite, false, {unsigned_value, 0}};
  const Integer modulus = Integer(1) << format.bits;
  return {Number::Kind::finite, true, {modulus - unsigned_value, 0}};
}

}  // namespace

Floor floor_at(const Dyadic& value, int exponent) {
  if (value.exponent >= exponent)
    return {value.significand << static_cast<unsigned>(value.exponent - exponent), true};
  if (value.significand.is_zero()) return {0, true};
  const auto shift = static_cast<unsigned>(exponent - value.exponent);
  // Every set bit below the cut makes the floor inexact; lsb is the lowest of them.
  return {value.significand >> shift, lsb(value.significand) >= shift};
}

int compare(const Dyadic& a, const Dyadic& b) {
  const int exponent = std::min(a.exponent, b.exponent);
  return floor_at(a, exponent).quotient.compare(floor_at(b, exponent).quotient);
}

Dyadic product(const Dyadic& a, const Dyadic& b) {
  return {a.significand * b.significand, a.exponent + b.exponent};
}

int floor_log2(const Dyadic& value) {
  return static_cast<int>(msb(value.significand)) + value.exponent;
}

Number nan() { return {Number::Kind::nan, false, {}}; }
Number infinity(bool negative) { return {Number::Kind::infinity, negative, {}}; }
Number zero(bool negative) { return {Number::Kind::finite, negative, {}}; }

Number dyadic(std::int64_t significand, int exponent) {
  const Integer value = significand;
  return {Number::Kind::finite, significand < 0, {abs(value), exponent}};
}

Number negated(Number number) {
  number.negative = !number.negative;
  return number;
}

int minimum_exponent(const FormatParameters& format) {
  return format.kind == Kind::exponent_only ? -format.bias : 1 - format.bias;
}

int spacing_exponent(const FormatParameters& format) {
  return format.kind == Kind::integer ? 0 : minimum_exponent(format) - format.fraction_bits;
}

std::uint64_t maximum_code(const FormatParameters& format) {
  const std::uint64_t all_ones = ones(format.exponent_bits + format.fraction_bits);
  switch (format.specials) {
    case Specials::ieee: return all_ones - (std::uint64_t{1} << format.fraction_bits);
    case Specials::nan_all_ones: return all_ones - 1;
    case Specials::nan_negative_zero:
    case Specials::none: break;
  }
  return all_ones;
}

bool has_infinity(const FormatParameters& format) {
  return format.kind == Kind::floating && format.specials == Specials::ieee;
}

bool has_nan(const FormatParameters& format) {
  if (format.kind == Kind::integer || format.specials == Specials::none) return false;
  return format.specials != Specials::ieee || format.fraction_bits > 0;
}

std::uint64_t nan_code(const FormatParameters& format) {
  const int magnitude_bits = format.exponent_bits + format.fraction_bits;
  if (format.specials == Specials::nan_negative_zero) return std::uint64_t{1} << magnitude_bits;
  if (format.specials == Specials::nan_all_ones) return ones(magnitude_bits);
  // Exponent field all ones and the first fraction bit set: IEEE 754-2019 section 6.2.1.
  return ones(format.exponent_bits + 1) << (format.fraction_bits - 1);
}

Number decode(const FormatParameters& format, std::uint64_t code) {
  if (format.kind == Kind::integer) return decode_integer(format, code);
  const std::uint64_t magnitude = magnitude_code(format, code);
  const bool negative = sign_of(format, code);
  if (format.specials == Specials::nan_negative_zero && negative && magnitude == 0) return nan();
  if (magnitude > maximum_code(format)) {
    const bool fraction_is_zero = (magnitude & ones(format.fraction_bits)) == 0;
    if (format.specials == Specials::ieee && fraction_is_zero) return infinity(negative);
    return nan();
  }
  const std::uint64_t fraction = magnitude & ones(format.fraction_bits);
  const auto field = static_cast<int>(magnitude >> format.fraction_bits);
  if (format.kind == Kind::exponent_only)
    return {Number::Kind::finite, false, {1, field - format.bias}};
  if (field == 0) {
    if (!format.has_subnormals || fraction == 0) return zero(negative);
    return {Number::Kind::finite, negative, {fraction, spacing_exponent(format)}};
  }
  const Integer significand = fraction + (Integer(1) << format.fraction_bits);
  return {
      Number::Kind::finite, negative, {significand, field - format.bias - format.fraction_bits}};
}

bool is_nan(const FormatParameters& format, std::uint64_t code) {
  return decode(format, code).is_nan();
}

int stored_exponent(const FormatParameters& format, std::uint64_t code) {
  const auto field = static_cast<int>(magnitude_code(format, code) >> format.fraction_bits);
  return field == 0 ? minimum_exponent(format) : field - format.bias;
}

}  // namespace guardbit::oracle
