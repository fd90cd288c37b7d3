#include "formats/text.hpp"

#include <boost/multiprecision/cpp_int.hpp>
#include <charconv>
#include <cstdlib>
#include <random>

#include "formats/codec.hpp"
#include "formats/format_catalogue.hpp"
#include "formats/neighbour.hpp"
#include "formats/support/error.hpp"
#include "tests/catch.hpp"

namespace guardbit::formats {

namespace {

std::uint64_t fp64_of(const std::string& text) {
  return encode(fp64, parse_value(text, "test").value);
}
std::uint64_t fp32_of(const std::string& text) {
  return encode(fp32, parse_value(text, "test").value);
}

/// The judge: the host's own conversions, which glibc rounds correctly.
std::uint64_t host_fp64(const std::string& text) {
  return std::bit_cast<std::uint64_t>(std::strtod(text.c_str(), nullptr));
}
std::uint32_t host_fp32(const std::string& text) {
  return std::bit_cast<std::uint32_t>(std::strtof(text.c_str(), nullptr));
}

}  // namespace

TEST_CASE("decimals and hexadecimal floats are read as the host reads them") {
  std::mt19937_64 random(1);
  std::vector<std::string> texts = {"0",
                                    "-0",
                                    "+1",
                                    "1.",
                                    ".5",
                                    "1e5",
                                    "1E-5",
                                    "-1.5e+3",
                                    "0x1p0",
                                    "0x1.8p-3",
                                    "-0X.8P1",
                                    "0x1.fffffffffffff8p0",
                                    "0x1p-1075",
                                    "0x1.0000000000001p-1075",
                                    "1e400",
                                    "-1e-400",
                                    "4.9406564584124654e-324",
                                    "2.4703282292062327e-324",
                                    "2.4703282292062328e-324",
                                    "1.7976931348623157e308",
                                    "1.7976931348623159e308",
                                    "9007199254740993",
                                    "1e19999",
                                    "1e-19999",
                                    "1e999999999999",
                                    "-1e-999999999999",
                                    "0e999999999999",
                                    "0x1p99999",
                                    "0x1p-99999"};
  for (int i = 0; i < 20000; ++i) {
    char buffer[64];
    const double value = std::bit_cast<double>(random());
    const auto end =
        std::to_chars(buffer, buffer + 64, value, std::chars_format::scientific, 1 + i % 25).ptr;
    if (value == value && value - value == 0) texts.emplace_back(buffer, end);
  }
  // Midpoints between neighbouring FP32 numbers, and just beside them: the hardest cases of a
  // decimal reader.
  for (int i = 0; i < 2000; ++i) {
    const auto code = static_cast<std::uint32_t>(random()) & 0x7f7fffffU;
    const Value low = decode(fp32, code);
    if (low.kind != Kind::finite) continue;
    const Value middle = {Kind::finite, false, low.exponent - 1, 2 * low.significand + 1};
    Decimal decimal = exact_decimal(middle);
    texts.push_back(to_string(decimal));
    decimal.digits += "00000000000000000000001";
    decimal.exponent -= 23;
    texts.push_back(to_string(decimal));
  }
  for (const std::string& text : texts) {
    INFO(text);
    CHECK(fp64_of(text) == host_fp64(text));
    CHECK(fp32_of(text) == host_fp32(text));
  }
}

TEST_CASE("codes are read with their format, TF32 as its register") {
  const ParsedValue half = parse_value("0x3c00:fp16", "test");
  CHECK(half.format == fp16);
  CHECK(half.code == 0x3c00);
  CHECK(to_string(*half.decimal) == "1");
  CHECK(parse_value("0b0111:e2m1", "test").code == 7);
  CHECK(parse_value("0X3F800000:TF32", "test").code == 0x3f800000U >> 13);
  CHECK(parse_value("0x1:e5m6:bias=20", "test").format == find_format("e5m6:bias=20"));
  CHECK(parse_value("0x7f:e4m3", "test").value.kind == Kind::nan);
  CHECK(parse_value("-inf", "test").value.negative);
  CHECK(parse_value("-NaN", "test").value.negative);
}

TEST_CASE("what is no number is refused") {
  for (const std::string text : {"",
                                 "-",
                                 ".",
                                 "e5",
                                 "1e",
                                 "1e+",
                                 "1..2",
                                 "1.5.2",
                                 "0x",
                                 "0x1",
                                 "0x1.8",
                                 "0xp1",
                                 "1f",
                                 "--1",
                                 "1 2",
                                 "infx",
                                 "0x10000:fp16",
                                 "0x:fp16",
                                 "3c00:fp16",
                                 "0x3c00:",
                                 "0x3c00:half16",
                                 "0x1ffffffff:tf32",
                                 "0b2:e2m1",
                                 "-0x3c00:fp16",
                                 "0x 1:fp16"}) {
    INFO(text);
    CHECK_THROWS_AS(parse_value(text, "test"), Error);
  }
  CHECK_THROWS_AS(parse_value(std::string(30000, '1'), "test"), Error);
}

TEST_CASE("exact decimals are exact") {
  CHECK(exact_text(decode(fp16, 0x2e66)) == "0.0999755859375");
  CHECK(exact_text(decode(fp64, 0x3fb999999999999a)) ==
        "0.1000000000000000055511151231257827021181583404541015625");
  CHECK(exact_text(decode(fp16, 0x8000)) == "-0");
  CHECK(exact_text(decode(fp32, 0x7f7fffff)) == "3.4028234663852885981170418348451692544e+38");
  std::mt19937_64 random(2);
  for (const Format& f : {fp64, fp32, bf16, e8m0, int64, *find_format("e15m20:bias=-20000")}) {
    for (int i = 0; i < 300; ++i) {
      const Value value = decode(f, random());
      if (value.kind != Kind::finite) continue;
      // digits * 10^exponent == significand * 2^binary exponent, over a common denominator.
      using boost::multiprecision::cpp_int;
      const Decimal decimal = exact_decimal(value);
      cpp_int left(decimal.digits);
      cpp_int right(value.significand);
      const auto power = [](int base, int n) {
        return cpp_int(pow(cpp_int(base), static_cast<unsigned>(n)));
      };
      (decimal.exponent >= 0 ? left : right) *= power(10, std::abs(decimal.exponent));
      (value.exponent >= 0 ? right : left) *= power(2, std::abs(value.exponent));
      CHECK(left == right);
      CHECK(decimal.negative == value.negative);
    }
  }
}

TEST_CASE("the shortest decimal reads back, and nothing shorter does") {
  const auto check = [](const Format& f, std::uint64_t code) {
    const std::string text = shortest_text(f, code);
    INFO(name_of(f) << " " << hex_text(f, code) << " " << text);
    const ParsedValue parsed = parse_value(text, "test");
    CHECK(encode(f, parsed.value) == code);
    return parsed.decimal ? parsed.decimal->digits.size() : 0;
  };
  for (const Format& f : {fp16, bf16, e5m2, e4m3, e4m3fnuz, e3m2, e2m3, e2m1, e8m0, ue4m3, int8}) {
    for (std::uint64_t code = 0; code <= code_mask(f); ++code) {
      const Value value = decode(f, code);
      if (value.kind == Kind::finite || value.kind == Kind::infinity) check(f, code);
    }
  }
  // std::to_chars promises the shortest too.
  std::mt19937_64 random(3);
  for (int i = 0; i < 3000; ++i) {
    const std::uint64_t code = random();
    if (decode(fp64, code).kind != Kind::finite) continue;
    char buffer[64];
    const double value = std::bit_cast<double>(code);
    const std::string host(
        buffer, std::to_chars(buffer, buffer + 64, value, std::chars_format::scientific).ptr);
    CHECK(parse_value(host, "test").decimal ==
          parse_value(shortest_text(fp64, code), "test").decimal);
  }
}

TEST_CASE("rounded decimals tie to even and carry") {
  const auto text = [](std::string digits, int exponent, int count) {
    return to_string({false, std::move(digits), exponent}, count);
  };
  CHECK(text("25", -1, 1) == "2");
  CHECK(text("35", -1, 1) == "4");
  CHECK(text("2501", -3, 1) == "3");
  CHECK(text("999", 0, 2) == "1000");
  CHECK(text("1", -4, 0) == "0.0001");
  CHECK(text("1", -5, 0) == "1e-5");
  CHECK(text("12345", 20, 3) == "1.23e+24");
  CHECK(difference({false, "1", 0}, {false, "1", -3}) == Decimal{false, "999", -3});
  CHECK(scaled({true, "3", 0}, -2) == Decimal{true, "75", -2});
}

TEST_CASE("fields, hexadecimal codes and floats") {
  CHECK(binary_text(fp16, 0x3c00) == "0 01111 0000000000");
  CHECK(binary_text(e8m0, 0x7f) == "01111111");
  CHECK(binary_text(int4, 0xd) == "1 101");
  CHECK(hex_text(e2m1, 7) == "0x7");
  CHECK(hex_text(e3m2, 0x20) == "0x20");
  CHECK(hex_text(tf32, 0x3f800000U >> 13) == "0x3f800000");
  CHECK(hex_float(decode(fp32, 0xbe400000)) == "-0x1.8p-3");
  CHECK(hex_float(decode(fp64, 1)) == "0x1p-1074");
  CHECK(hex_float(decode(fp16, 0)) == "0x0p+0");
  std::mt19937_64 random(4);
  for (int i = 0; i < 1000; ++i) {
    const std::uint64_t code = random();
    if (decode(fp64, code).kind == Kind::finite)
      CHECK(fp64_of(hex_float(decode(fp64, code))) == code);
  }
}

TEST_CASE("neighbours are the adjacent values") {
  for (const FormatEntry& entry : format_catalogue) {
    if (bits(entry.format) > 16) continue;
    const Format f = entry.format;
    INFO(entry.name);
    // Walk up from the lowest value: strictly increasing, back down again, and every value met
    // once.
    std::uint64_t code =
        f.has_sign ? (is_integer(f) ? sign_mask(f)
                                    : sign_mask(f) |
                                          (has_infinity(f) ? infinity_code(f) : max_finite_code(f)))
                   : 0;
    CHECK_FALSE(neighbour(f, code, false));
    std::uint64_t met = 1;
    while (const auto next = neighbour(f, code, true)) {
      const Value low = decode(f, code);
      const Value high = decode(f, *next);
      if (low.kind != Kind::infinity && high.kind != Kind::infinity) {
        CHECK_FALSE(difference(exact_decimal(high), exact_decimal(low)).negative);
      }
      const auto back = neighbour(f, *next, false);
      REQUIRE(back);
      CHECK(decode(f, *back) == low);
      code = *next;
      ++met;
    }
    std::uint64_t values = 0;
    for (std::uint64_t c = 0; c <= code_mask(f); ++c) {
      const Value v = decode(f, c);
      values += v.kind != Kind::nan && !(v.kind == Kind::zero && v.negative) ? 1 : 0;
    }
    CHECK(met == values);
  }
}

}  // namespace guardbit::formats
