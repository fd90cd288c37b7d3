#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "formats/format.hpp"
#include "formats/value.hpp"

namespace guardbit::formats {

/// An exact decimal number, (-1)^negative * digits * 10^exponent. Every binary number is one. The
/// digits have neither leading nor trailing zeros, except that zero is "0".
struct Decimal {
  bool negative = false;
  std::string digits = "0";
  int exponent = 0;

  friend bool operator==(const Decimal&, const Decimal&) = default;
};

/// What a person wrote for a number.
struct ParsedValue {
  /// rounds as the exact number would, in any format
  Unrounded value;
  /// exactly; absent for NaN, infinity and exponents past the bounds below
  std::optional<Decimal> decimal;
  /// when it was written as a code
  std::optional<Format> format;
  /// then the code
  std::uint64_t code = 0;
};

/// Bounds of what is computed exactly: longer numbers are refused, and larger or smaller ones
/// (10^±20000) round as if infinitesimal or past every format, which they are.
inline constexpr int most_digits = 20000;

/// Reads a decimal ("-1.5e-3"), a C hexadecimal floating constant ("0x1.8p-3"), "inf", "nan" (both
/// with a sign), or a code with its format ("0x3c00:fp16", "0b0111:e2m1"); blanks around it do not
/// count. Throws Error, naming `where`.
ParsedValue parse_value(std::string_view text, std::string_view where);

/// A finite number or zero as a decimal.
Decimal exact_decimal(const Value& value);

Decimal difference(const Decimal& x, const Decimal& y);

/// x * 2^power.
Decimal scaled(const Decimal& x, int power);

/// Rounds as the exact number would, in any format.
Unrounded unrounded(const Decimal& x);

/// At most `digits` significant digits (0: all), correctly rounded, ties to even. Positional from
/// 10^-4 to 10^21.
std::string to_string(const Decimal& x, int digits = 0);

/// All digits of a finite number; "inf", "-inf", "nan", "-nan", "-0".
std::string exact_text(const Value& value);

/// The shortest decimal that rounds to the number's code (nearest even), of those the closest.
std::string shortest_text(const Format& format, std::uint64_t code);

/// C hexadecimal floating constant with a leading one: "0x1.8p-3".
std::string hex_float(const Value& value);

/// The bits of a code; empty where the format has no such field. Of integers the fraction holds
/// everything but the sign.
struct Fields {
  std::string sign;
  std::string exponent;
  std::string fraction;
};
Fields fields_of(const Format& format, std::uint64_t code);

/// "0 01111 0000000000"
std::string binary_text(const Format& format, std::uint64_t code);

/// "0x3c00", as many digits as the format's width needs; formats that sit at the top of a larger
/// register (TF32) as that register.
std::string hex_text(const Format& format, std::uint64_t code);

}  // namespace guardbit::formats
