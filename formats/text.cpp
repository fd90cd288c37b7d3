#include "formats/text.hpp"

#include <algorithm>
#include <boost/multiprecision/cpp_int.hpp>
#include <charconv>

#include "formats/codec.hpp"
#include "formats/format_catalogue.hpp"
#include "formats/support/error.hpp"
#include "formats/support/printable.hpp"
#include "formats/support/suggestions.hpp"

namespace guardbit::formats {

namespace {

using boost::multiprecision::cpp_int;

/// Far past every format (its largest exponent is 2^15 - 1 + 32768), with room for sums of ints.
constexpr int beyond_exponent = 1 << 20;

cpp_int power(int base, int exponent) {
  return boost::multiprecision::pow(cpp_int(base), static_cast<unsigned>(exponent));
}

Decimal normalised(bool negative, const std::string& digits, int exponent) {
  const std::size_t first = digits.find_first_not_of('0');
  if (first == std::string::npos) return {negative, "0", 0};
  const std::size_t last = digits.find_last_not_of('0');
  exponent += static_cast<int>(digits.size() - 1 - last);
  return {negative, digits.substr(first, last - first + 1), exponent};
}

/// significand * 2^exponent, plus a tail when sticky, with the significand cut to what Unrounded
/// holds.
Unrounded cut(bool negative, cpp_int significand, int exponent, bool sticky) {
  if (significand == 0) return exactly(zero_value(negative));
  constexpr int width = 120;
  const int excess = static_cast<int>(boost::multiprecision::msb(significand)) + 1 - width;
  if (excess > 0) {
    const cpp_int kept = significand >> excess;
    sticky = sticky || (kept << excess) != significand;
    significand = kept;
    exponent += excess;
  }
  const cpp_int high = significand >> 64;
  const cpp_int low = significand & ~std::uint64_t{0};
  return {Kind::finite, negative, exponent,
          (uint128{static_cast<std::uint64_t>(high)} << 64) | static_cast<std::uint64_t>(low),
          sticky};
}

Unrounded beyond(bool negative, bool large) {
  return {Kind::finite, negative, large ? beyond_exponent : -beyond_exponent, 1, false};
}

Decimal decimal_of(bool negative, const cpp_int& significand, int exponent) {
  if (significand == 0) return {negative, "0", 0};
  if (exponent >= 0) return normalised(negative, cpp_int(significand << exponent).str(), 0);
  return normalised(negative, cpp_int(significand * power(5, -exponent)).str(), exponent);
}

/// Value of a digit of that base, or -1.
int digit_of(char c, int base) {
  const int value = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : 99;
  return value < base ? value : -1;
}

/// "DIGITS[.DIGITS]" and, after `exponent_mark`, a decimal exponent.
struct Scientific {
  std::string digits;
  int fraction_digits = 0;
  int exponent = 0;
  bool has_exponent = false;
};

/// A signed decimal exponent, clamped to where every format is left behind.
std::optional<int> parse_exponent(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  if (text.empty() || text.find_first_not_of("0123456789") != std::string_view::npos)
    return std::nullopt;
  int value = beyond_exponent;
  std::from_chars(text.data(), text.data() + text.size(),
                  value);  // left as it is when out of range
  value = std::min(value, beyond_exponent);
  return negative ? -value : value;
}

std::optional<Scientific> parse_scientific(std::string_view text, int base, char exponent_mark) {
  Scientific number;
  bool after_point = false;
  std::size_t i = 0;
  for (; i < text.size() && text[i] != exponent_mark; ++i) {
    if (text[i] == '.' && !after_point) {
      after_point = true;
    } else if (digit_of(text[i], base) >= 0) {
      number.digits += text[i];
      number.fraction_digits += after_point ? 1 : 0;
    } else {
      return std::nullopt;
    }
  }
  if (number.digits.empty()) return std::nullopt;
  if (i == text.size()) return number;
  const std::optional<int> exponent = parse_exponent(text.substr(i + 1));
  if (!exponent) return std::nullopt;
  number.exponent = *exponent;
  number.has_exponent = true;
  return number;
}

ParsedValue from_decimal_digits(bool negative, const Scientific& number) {
  const Decimal decimal =
      normalised(negative, number.digits, number.exponent - number.fraction_digits);
  if (decimal.digits == "0") return {exactly(zero_value(negative)), decimal, {}, 0};
  const int leading = static_cast<int>(decimal.digits.size()) + decimal.exponent;
  if (leading > most_digits || leading < -most_digits)
    return {beyond(negative, leading > 0), {}, {}, 0};
  return {unrounded(decimal), decimal, {}, 0};
}

ParsedValue from_hex_digits(bool negative, const Scientific& number) {
  const cpp_int significand("0x" + number.digits);
  if (significand == 0) return {exactly(zero_value(negative)), Decimal{negative, "0", 0}, {}, 0};
  const int exponent = number.exponent - 4 * number.fraction_digits;
  const int leading = static_cast<int>(boost::multiprecision::msb(significand)) + exponent;
  constexpr int most_bits = most_digits / 3 * 10;  // 2^10 > 10^3
  if (leading > most_bits || leading < -most_bits)
    return {beyond(negative, leading > 0), {}, {}, 0};
  return {cut(negative, significand, exponent, false),
          decimal_of(negative, significand, exponent),
          {},
          0};
}

/// "0x3c00:fp16"
ParsedValue parse_code(std::string_view text, std::size_t colon, std::string_view where) {
  const std::string_view digits = text.substr(0, colon);
  const Format format = require_format(text.substr(colon + 1), where);
  const int base = digits.starts_with("0x") ? 16 : digits.starts_with("0b") ? 2 : 0;
  std::uint64_t word = 0;
  const char* begin = digits.data() + std::min<std::size_t>(2, digits.size());
  const char* end = digits.data() + digits.size();
  const auto parsed = std::from_chars(begin, end, word, base == 0 ? 16 : base);
  const int shift = container_shift(format);
  if (base == 0 || parsed.ec != std::errc{} || parsed.ptr != end ||
      (word >> shift) > code_mask(format)) {
    throw Error(std::string(where),
                in_quotes(text) + " is not a code of " + std::to_string(bits(format) + shift) +
                    " bits; write it as in " + hex_text(format, min_normal_code(format)) + ":" +
                    name_of(format));
  }
  const std::uint64_t code = word >> shift;
  const Value value = decode(format, code);
  ParsedValue result{exactly(value), {}, format, code};
  if (value.kind == Kind::zero || value.kind == Kind::finite) result.decimal = exact_decimal(value);
  return result;
}

/// The digit string plus one in the last place.
std::string incremented(std::string digits) {
  for (std::size_t i = digits.size(); i-- > 0;) {
    if (digits[i] != '9') {
      ++digits[i];
      return digits;
    }
    digits[i] = '0';
  }
  return "1" + digits;
}

/// Rounded to `count` significant digits, ties to even.
Decimal rounded(const Decimal& x, std::size_t count) {
  if (x.digits.size() <= count) return x;
  std::string kept = x.digits.substr(0, count);
  const char next = x.digits[count];
  const bool tie = next == '5' && x.digits.size() == count + 1;
  const bool odd = (kept.back() - '0') % 2 != 0;
  if (next > '5' || (next == '5' && (!tie || odd))) kept = incremented(kept);
  return normalised(x.negative, kept, x.exponent + static_cast<int>(x.digits.size() - count));
}

std::string binary(std::uint64_t value, int width) {
  std::string text;
  for (int bit = width - 1; bit >= 0; --bit) text += ((value >> bit) & 1) != 0 ? '1' : '0';
  return text;
}

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = std::min(text.find_first_not_of(' '), text.size());
  return text.substr(begin, text.find_last_not_of(' ') + 1 - begin);
}

/// NaN and infinity; empty for numbers.
std::string special_text(const Value& value) {
  const std::string sign = value.negative ? "-" : "";
  if (value.kind == Kind::nan) return sign + "nan";
  return value.kind == Kind::infinity ? sign + "inf" : "";
}

}  // namespace

ParsedValue parse_value(std::string_view text, std::string_view where) {
  text = trimmed(text);
  const std::string lower = lower_case(text);
  std::string_view rest = lower;
  if (const std::size_t colon = rest.find(':'); colon != std::string_view::npos) {
    return parse_code(rest, colon, where);
  }
  if (rest.size() > most_digits)
    throw Error(std::string(where), "a number of more than 20000 characters");
  const bool negative = rest.starts_with('-');
  if (negative || rest.starts_with('+')) rest.remove_prefix(1);
  if (rest == "inf" || rest == "infinity") return {exactly(infinity_value(negative)), {}, {}, 0};
  if (rest == "nan") return {exactly(nan_value(negative)), {}, {}, 0};
  if (rest.starts_with("0x")) {
    const auto number = parse_scientific(rest.substr(2), 16, 'p');
    if (number && number->has_exponent) return from_hex_digits(negative, *number);
    throw Error(
        std::string(where),
        in_quotes(text) +
            " is neither a code nor a number; a code names its format, as in 0x3c00:fp16, and a hexadecimal number its exponent, as in 0x1.8p-3");
  }
  if (const auto number = parse_scientific(rest, 10, 'e'))
    return from_decimal_digits(negative, *number);
  throw Error(std::string(where), in_quotes(text) + " is not a number",
              "a decimal, 0x1.8p-3, inf, nan, or a code as in 0x3c00:fp16");
}

Decimal exact_decimal(const Value& value) {
  if (value.kind != Kind::finite) return {value.negative, "0", 0};
  return decimal_of(value.negative, cpp_int(value.significand), value.exponent);
}

Decimal difference(const Decimal& x, const Decimal& y) {
  const int exponent = std::min(x.exponent, y.exponent);
  cpp_int a = cpp_int(x.digits) * power(10, x.exponent - exponent);
  cpp_int b = cpp_int(y.digits) * power(10, y.exponent - exponent);
  if (x.negative) a = -a;
  if (y.negative) b = -b;
  const cpp_int result = a - b;
  return normalised(result < 0, cpp_int(abs(result)).str(), exponent);
}

Decimal scaled(const Decimal& x, int power_of_two) {
  const cpp_int digits(x.digits);
  if (power_of_two >= 0)
    return normalised(x.negative, cpp_int(digits << power_of_two).str(), x.exponent);
  return normalised(x.negative, cpp_int(digits * power(5, -power_of_two)).str(),
                    x.exponent + power_of_two);
}

Unrounded unrounded(const Decimal& x) {
  const cpp_int digits(x.digits);
  if (digits == 0) return exactly(zero_value(x.negative));
  if (x.exponent >= 0) return cut(x.negative, digits * power(10, x.exponent), 0, false);
  const cpp_int divisor = power(10, -x.exponent);
  // Enough quotient bits that what is cut off lies below every format's precision.
  const int shift = std::max(0, 128 + static_cast<int>(boost::multiprecision::msb(divisor)) -
                                    static_cast<int>(boost::multiprecision::msb(digits)));
  cpp_int quotient;
  cpp_int rest;
  boost::multiprecision::divide_qr(cpp_int(digits << shift), divisor, quotient, rest);
  return cut(x.negative, quotient, -shift, rest != 0);
}

std::string to_string(const Decimal& x, int digits) {
  const Decimal shown = digits > 0 ? rounded(x, static_cast<std::size_t>(digits)) : x;
  const std::string sign = shown.negative ? "-" : "";
  const int count = static_cast<int>(shown.digits.size());
  const int point = count + shown.exponent;  // digits before the point
  if (shown.digits == "0") return sign + "0";
  if (point > 21 || point < -3) {
    std::string text = sign + shown.digits.substr(0, 1);
    if (count > 1) text += "." + shown.digits.substr(1);
    return text + "e" + (point > 0 ? "+" : "") + std::to_string(point - 1);
  }
  if (point >= count)
    return sign + shown.digits + std::string(static_cast<std::size_t>(point - count), '0');
  if (point <= 0)
    return sign + "0." + std::string(static_cast<std::size_t>(-point), '0') + shown.digits;
  return sign + shown.digits.substr(0, static_cast<std::size_t>(point)) + "." +
         shown.digits.substr(static_cast<std::size_t>(point));
}

std::string exact_text(const Value& value) {
  const std::string special = special_text(value);
  return special.empty() ? to_string(exact_decimal(value)) : special;
}

std::string shortest_text(const Format& format, std::uint64_t code) {
  const Value value = decode(format, code);
  if (value.kind != Kind::finite) return exact_text(value);
  const Decimal exact = exact_decimal(value);
  for (std::size_t count = 1; count < exact.digits.size(); ++count) {
    const std::string below = exact.digits.substr(0, count);
    const int exponent = exact.exponent + static_cast<int>(exact.digits.size() - count);
    const Decimal down = normalised(exact.negative, below, exponent);
    const Decimal up = normalised(exact.negative, incremented(below), exponent);
    const bool up_is_closer = rounded(exact, count) == up;
    for (const Decimal& candidate : {up_is_closer ? up : down, up_is_closer ? down : up}) {
      if (encode(format, unrounded(candidate)) == code) return to_string(candidate);
    }
  }
  return to_string(exact);
}

std::string hex_float(const Value& value) {
  if (value.kind == Kind::nan || value.kind == Kind::infinity) return special_text(value);
  const std::string sign = value.negative ? "-0x" : "0x";
  if (value.kind == Kind::zero) return sign + "0p+0";
  const int top = leading_bit(value.significand);
  std::uint64_t fraction = top == 0 ? 0 : value.significand << (64 - top);
  std::string digits;
  for (; fraction != 0; fraction <<= 4) digits += "0123456789abcdef"[fraction >> 60];
  const int exponent = value.exponent + top;
  return sign + "1" + (digits.empty() ? "" : "." + digits) + "p" + (exponent < 0 ? "" : "+") +
         std::to_string(exponent);
}

Fields fields_of(const Format& format, std::uint64_t code) {
  code &= code_mask(format);
  return {binary(code >> (bits(format) - 1), format.has_sign ? 1 : 0),
          // Integers without a sign have up to 64 fraction bits, and no exponent.
          format.exponent_bits == 0 ? std::string()
                                    : binary(code >> format.fraction_bits, format.exponent_bits),
          binary(code, format.fraction_bits)};
}

std::string binary_text(const Format& format, std::uint64_t code) {
  const Fields fields = fields_of(format, code);
  std::string text = fields.sign;
  for (const std::string& field : {fields.exponent, fields.fraction}) {
    if (!text.empty() && !field.empty()) text += ' ';
    text += field;
  }
  return text;
}

std::string hex_text(const Format& format, std::uint64_t code) {
  const int shift = container_shift(format);
  const std::uint64_t word = (code & code_mask(format)) << shift;
  std::string text = "0x";
  for (int nibble = (bits(format) + shift + 3) / 4; nibble-- > 0;) {
    text += "0123456789abcdef"[(word >> (4 * nibble)) & 15];
  }
  return text;
}

}  // namespace guardbit::formats
