#include <bit>
#include <cmath>
#include <random>

#include "tests/catch.hpp"
#include "tests/oracle/round.hpp"

namespace {

using namespace guardbit::oracle;
using Specials = FormatParameters::Specials;

double value_of(const FormatParameters& format, std::uint64_t code) {
  const Number number = decode(format, code);
  if (number.is_nan()) return std::nan("");
  if (number.is_infinity()) return number.negative ? -INFINITY : INFINITY;
  const double magnitude =
      std::ldexp(static_cast<double>(number.magnitude.significand), number.magnitude.exponent);
  return number.negative ? -magnitude : magnitude;
}

Number number_of(double value) { return decode(fp64, std::bit_cast<std::uint64_t>(value)); }

std::uint64_t to_nearest(const FormatParameters& format, double value) {
  return encode(format, number_of(value), nearest_even);
}

const std::vector<FormatParameters> small_formats = {bf16,  fp16, e5m2,  e4m3, e4m3fnuz, e5m2fnuz,
                                                     e3m2,  e2m3, e2m1,  e8m0, ue4m3,    int8,
                                                     uint8, int4, uint4, b1};
const std::vector<Rounding> roundings = {nearest_even, nearest_away, toward_zero,     upward,
                                         downward,     to_odd,       stochastic(3, 4)};

}  // namespace

TEST_CASE("published limits of the formats") {
  CHECK(value_of(fp16, maximum_code(fp16)) == 65504);
  CHECK(value_of(bf16, maximum_code(bf16)) == 0x1.fep127);
  CHECK(value_of(e5m2, maximum_code(e5m2)) == 57344);
  CHECK(value_of(e4m3, maximum_code(e4m3)) == 448);
  CHECK(value_of(e4m3fnuz, maximum_code(e4m3fnuz)) == 240);
  CHECK(value_of(e5m2fnuz, maximum_code(e5m2fnuz)) == 57344);
  CHECK(value_of(e3m2, maximum_code(e3m2)) == 28);
  CHECK(value_of(e2m3, maximum_code(e2m3)) == 7.5);
  CHECK(value_of(e2m1, maximum_code(e2m1)) == 6);
  CHECK(value_of(e8m0, maximum_code(e8m0)) == 0x1p127);
  CHECK(value_of(ue4m3, maximum_code(ue4m3)) == 448);
  CHECK(value_of(tf32, maximum_code(tf32)) == 0x1.ffcp127);
  CHECK(value_of(fp64, maximum_code(fp64)) == 0x1.fffffffffffffp1023);
  CHECK(value_of(fp16, 1) == 0x1p-24);
  CHECK(value_of(e5m2, 1) == 0x1p-16);
  CHECK(value_of(e4m3, 1) == 0x1p-9);
  CHECK(value_of(e4m3fnuz, 1) == 0x1p-10);
  CHECK(value_of(e5m2fnuz, 1) == 0x1p-17);
  CHECK(value_of(e3m2, 1) == 0.0625);
  CHECK(value_of(e2m3, 1) == 0.125);
  CHECK(value_of(e2m1, 1) == 0.5);
  CHECK(value_of(e8m0, 0) == 0x1p-127);
  CHECK(value_of(int8, 0x80) == -128);
  CHECK(value_of(uint8, 0xff) == 255);
  CHECK(value_of(int4, 0x8) == -8);
  CHECK(value_of(b1, 1) == 1);
  CHECK(value_of(int32, 0x80000000) == -2147483648.0);
}

TEST_CASE("NaN codes") {
  CHECK(is_nan(e4m3, 0x7f));
  CHECK(is_nan(e4m3, 0xff));
  CHECK_FALSE(is_nan(e4m3, 0x7e));
  CHECK(is_nan(e4m3fnuz, 0x80));
  CHECK(is_nan(e5m2fnuz, 0x80));
  CHECK_FALSE(is_nan(e5m2fnuz, 0xff));
  CHECK(is_nan(e8m0, 0xff));
  CHECK(is_nan(ue4m3, 0x7f));
  CHECK(is_nan(ue4m3, 0xff));
  CHECK(is_nan(fp16, 0x7c01));
  CHECK(decode(fp16, 0xfc00).is_infinity());
  for (const FormatParameters& format : small_formats)
    if (has_nan(format)) CHECK(is_nan(format, nan_code(format)));
}

TEST_CASE("fp32 and fp64 codes mean what the machine's own numbers mean") {
  std::mt19937_64 random(1);
  for (int i = 0; i < 20000; ++i) {
    const std::uint64_t code = random();
    const auto wide = std::bit_cast<double>(code);
    const auto narrow = std::bit_cast<float>(static_cast<std::uint32_t>(code));
    if (!std::isnan(wide)) CHECK(value_of(fp64, code) == wide);
    if (!std::isnan(narrow)) CHECK(value_of(fp32, code & 0xffffffff) == narrow);
    if (!std::isnan(wide))
      CHECK(to_nearest(fp32, wide) == std::bit_cast<std::uint32_t>(static_cast<float>(wide)));
  }
}

TEST_CASE("a number of a format encodes to itself under every rounding") {
  for (const FormatParameters& format : small_formats)
    for (std::uint64_t code = 0; code < std::uint64_t{1} << format.bits; ++code) {
      const Number number = decode(format, code);
      if (number.is_nan()) continue;
      for (const Rounding& rounding : roundings)
        if (encode(format, number, rounding) != code) FAIL("code " << code);
    }
}

TEST_CASE("neighbours by table and by exponent agree") {
  std::mt19937_64 random(2);
  for (const FormatParameters& format : {fp16, bf16, e5m2, e4m3, e4m3fnuz, e5m2fnuz, e3m2, e2m3,
                                         e2m1, e8m0, ue4m3, floating(4, 3, 7, Specials::ieee)}) {
    for (int i = 0; i < 20000; ++i) {
      const int exponent = static_cast<int>(random() % 300) - 170;
      const Dyadic magnitude{random() >> (random() % 64), exponent};
      const Neighbours table = neighbours_by_table(format, magnitude);
      const Neighbours spacing = neighbours_by_exponent(format, magnitude);
      REQUIRE(table.beyond == spacing.beyond);
      if (table.beyond) continue;
      REQUIRE(table.exact == spacing.exact);
      REQUIRE(table.low_code == spacing.low_code);
      REQUIRE(compare(table.low, spacing.low) == 0);
      if (table.exact) continue;
      REQUIRE(table.high_code == spacing.high_code);
      REQUIRE(compare(table.high, spacing.high) == 0);
    }
  }
}

TEST_CASE("roundings at a tie, beside it and at the limits") {
  const Number tie = number_of(0x1.002p0);  // halfway between fp16's 1 and 1 + 2^-10
  CHECK(encode(fp16, tie, nearest_even) == 0x3c00);
  CHECK(encode(fp16, tie, nearest_away) == 0x3c01);
  CHECK(encode(fp16, tie, toward_zero) == 0x3c00);
  CHECK(encode(fp16, tie, upward) == 0x3c01);
  CHECK(encode(fp16, negated(tie), upward) == 0xbc00);
  CHECK(encode(fp16, negated(tie), downward) == 0xbc01);
  CHECK(encode(fp16, tie, to_odd) == 0x3c01);
  CHECK(encode(fp16, tie, stochastic(7, 4)) == 0x3c00);
  CHECK(encode(fp16, tie, stochastic(8, 4)) == 0x3c01);
  CHECK(encode(fp16, tie, stochastic(0, 4)) == 0x3c00);
  CHECK(to_nearest(fp16, 65519.99) == 0x7bff);
  CHECK(to_nearest(fp16, 65520) == 0x7c00);
  CHECK(encode(fp16, number_of(1e9), toward_zero) == 0x7bff);
  CHECK(encode(fp16, number_of(-1e9), upward) == 0xfbff);
  CHECK(encode(fp16, number_of(-1e9), downward) == 0xfc00);
  CHECK(encode(fp16, number_of(1e9), nearest_even, saturate) == 0x7bff);
  CHECK(encode(fp16, infinity(true), nearest_even, saturate) == 0xfbff);
  CHECK(to_nearest(e4m3, 464) == 0x7e);  // PyTorch's and ml_dtypes' last finite result
  CHECK(to_nearest(e4m3, 464.001) == 0x7f);
  CHECK(encode(e4m3, number_of(464.001), nearest_even, saturate) == 0x7e);
  CHECK(to_nearest(e2m1, 1e9) == 0x7);
  CHECK(to_nearest(e2m1, -INFINITY) == 0xf);
  CHECK(to_nearest(e2m1, std::nan("")) == 0x7);
  CHECK(to_nearest(e4m3fnuz, -0.0) == 0);
  CHECK(to_nearest(e4m3fnuz, -1e-9) == 0);
  CHECK(to_nearest(e4m3fnuz, 1e9) == 0x80);
  CHECK(to_nearest(e2m1, -0.0) == 0x8);
}

TEST_CASE("formats without sign or without zero, and integers") {
  CHECK(to_nearest(e8m0, 0) == 0);
  CHECK(to_nearest(e8m0, 1) == 127);
  CHECK(to_nearest(e8m0, 1.5) == 128);
  CHECK(encode(e8m0, number_of(1.5), to_odd) == 127);
  CHECK(encode(e8m0, number_of(1.25), upward) == 128);
  CHECK(to_nearest(e8m0, -1) == 0xff);
  CHECK(encode(e8m0, number_of(-1), nearest_even, saturate) == 0);
  CHECK(encode(e8m0, number_of(1e39), nearest_even, saturate) == 0xfe);
  CHECK(to_nearest(e8m0, 1e39) == 0xff);
  CHECK(encode(ue4m3, number_of(-1), nearest_even, saturate) == 0);
  CHECK(to_nearest(ue4m3, -1) == 0x7f);
  CHECK(to_nearest(int8, -2.5) == 0xfe);
  CHECK(encode(int8, number_of(-2.5), nearest_away) == 0xfd);
  CHECK(to_nearest(int8, 1e9) == 0x7f);
  CHECK(to_nearest(int8, -INFINITY) == 0x80);
  CHECK(to_nearest(int8, std::nan("")) == 0);
  CHECK(to_nearest(uint8, -3) == 0);
  CHECK(to_nearest(uint4, 15.4) == 15);
  CHECK(to_nearest(b1, 0.6) == 1);
}
