#include <bit>

#include "formats/arithmetic.hpp"
#include "formats/format_catalogue.hpp"
#include "tests/catch.hpp"

/// NaNs and signs of zero: what the judge leaves open, written out from the headers' rules.
namespace guardbit::formats {
namespace {

constexpr Value code_of(const Format& format, std::uint64_t code) { return decode(format, code); }

constexpr std::uint64_t under(const Format& to, const Value& nan, Overflow::Nan rule) {
  return encode(to, nan, Rounding::nearest_even, {.nan = rule});
}
constexpr std::uint64_t without_nan(const Format& to, const Value& nan, Overflow::NoNan rule) {
  return encode(to, nan, Rounding::nearest_even, {.no_nan = rule});
}

constexpr Value quiet = nan_value(false);
constexpr Value quiet_negative = nan_value(true);
/// Signalling, negative; the upper ten fraction bits hold 9.
constexpr Value signalling = decode(fp32, 0xFF812345);
/// Signalling, with a payload that 16 bits cut off.
constexpr Value low_payload = decode(fp32, 0x7F800001);

/// fp32 codes of operations, so that a failure shows bits.
constexpr std::uint64_t fp32_code(const Unrounded& x) { return encode(fp32, x); }

constexpr std::uint64_t nan_one = 0x7F800001;  // signalling
constexpr std::uint64_t nan_two = 0xFFC00002;  // quiet, negative
constexpr std::uint64_t quieted_one = 0x7FC00001;
constexpr std::uint64_t default_nan = 0x7FC00000;
constexpr std::uint64_t infinity = 0x7F800000;
constexpr std::uint64_t one = 0x3F800000;
constexpr std::uint64_t minus = 0x80000000;

constexpr Value v(std::uint64_t code) { return decode(fp32, code); }
constexpr Unrounded e(std::uint64_t code) { return exactly(decode(fp32, code)); }

}  // namespace

TEST_CASE("a decoded NaN holds its payload where FP64 does") {
  CHECK(code_of(fp64, 0xFFF8000000000123) == Value{Kind::nan, true, 0, 0x8000000000123});
  CHECK(code_of(fp32, 0x7F800001) == Value{Kind::nan, false, 0, std::uint64_t{1} << 29});
  CHECK(code_of(fp16, 0xFE01) == Value{Kind::nan, true, 0, quiet_bit | std::uint64_t{1} << 42});
  CHECK(code_of(e5m2, 0x7D) == Value{Kind::nan, false, 0, std::uint64_t{1} << 50});
  CHECK(code_of(e4m3, 0x7F) == quiet);
  CHECK(code_of(e4m3, 0xFF) == quiet_negative);
  CHECK(code_of(ue4m3, 0x7F) == quiet);
  CHECK(code_of(e8m0, 0xFF) == quiet);
  CHECK(code_of(e4m3fnuz, 0x80) == quiet);
  CHECK(code_of(e5m2fnuz, 0x80) == quiet);
}

TEST_CASE("every NaN of the IEEE formats keeps sign and leading payload, quieted") {
  for (const Format& from : {fp16, bf16, tf32, e5m2}) {
    for (std::uint64_t code = 0; code <= code_mask(from); ++code) {
      if (decode(from, code).kind != Kind::nan) continue;
      const std::uint64_t sign = code >> (bits(from) - 1);
      const std::uint64_t fraction = code & fraction_mask(from);
      for (const Format& to : {fp64, fp32, tf32, bf16, fp16, e5m2}) {
        const int up = to.fraction_bits - from.fraction_bits;
        const std::uint64_t kept = up >= 0 ? fraction << up : fraction >> -up;
        const std::uint64_t quiet_fraction = kept | std::uint64_t{1} << (to.fraction_bits - 1);
        const std::uint64_t exponent = (std::uint64_t{1} << to.exponent_bits) - 1;
        REQUIRE(convert(from, code, to) ==
                (sign << (bits(to) - 1) | exponent << to.fraction_bits | quiet_fraction));
      }
    }
  }
}

TEST_CASE("NaN rules of a format with payloads") {
  using Nan = Overflow::Nan;
  CHECK(under(fp16, signalling, Nan::payload) == 0xFE09);
  CHECK(under(fp16, signalling, Nan::quiet_signed) == 0xFE00);
  CHECK(under(fp16, signalling, Nan::quiet) == 0x7E00);
  CHECK(under(fp16, signalling, Nan::all_ones_signed) == 0xFFFF);
  CHECK(under(fp16, signalling, Nan::all_ones) == 0x7FFF);
  CHECK(under(fp16, signalling, Nan::cut) == 0xFC09);
  CHECK(under(fp16, signalling, Nan::cut_then_below) == 0xFC08);
  CHECK(under(fp16, low_payload, Nan::payload) == 0x7E00);
  CHECK(under(fp16, low_payload, Nan::cut) == 0x7C00);
  CHECK(under(fp16, low_payload, Nan::cut_then_below) == 0x7BFF);
  CHECK(under(fp32, low_payload, Nan::cut) == 0x7F800001);
  CHECK(under(fp64, low_payload, Nan::payload) == 0x7FF8000020000000);
}

TEST_CASE("NaN rules of formats with one NaN code per sign, or one") {
  using Nan = Overflow::Nan;
  for (const Nan rule : {Nan::payload, Nan::quiet_signed, Nan::all_ones_signed, Nan::cut}) {
    CAPTURE(static_cast<int>(rule));
    CHECK(under(e4m3, signalling, rule) == 0xFF);
    CHECK(under(e4m3, low_payload, rule) == 0x7F);
    CHECK(under(e4m3fnuz, signalling, rule) == 0x80);
    CHECK(under(e5m2fnuz, quiet, rule) == 0x80);
    CHECK(under(ue4m3, signalling, rule) == 0x7F);
    CHECK(under(e8m0, signalling, rule) == 0xFF);
  }
  for (const Nan rule : {Nan::quiet, Nan::all_ones}) {
    CAPTURE(static_cast<int>(rule));
    CHECK(under(e4m3, signalling, rule) == 0x7F);
    CHECK(under(e4m3fnuz, signalling, rule) == 0x80);
    CHECK(under(e8m0, signalling, rule) == 0xFF);
  }
}

TEST_CASE("NaN where there is none") {
  using NoNan = Overflow::NoNan;
  for (const Value& nan : {quiet, quiet_negative}) {
    CHECK(without_nan(e2m1, nan, NoNan::maximum) == 0x7);
    CHECK(without_nan(e3m2, nan, NoNan::maximum) == 0x1F);
    CHECK(without_nan(int8, nan, NoNan::maximum) == 0x7F);
    CHECK(without_nan(uint8, nan, NoNan::maximum) == 0xFF);
    CHECK(without_nan(int32, nan, NoNan::maximum) == 0x7FFFFFFF);
    CHECK(without_nan(e2m1, nan, NoNan::zero) == 0);
    CHECK(without_nan(int8, nan, NoNan::zero) == 0);
    CHECK(without_nan(e2m1, nan, NoNan::negative_zero) == 0x8);
    CHECK(without_nan(int8, nan, NoNan::negative_zero) == 0);
    CHECK(without_nan(int32, nan, NoNan::minimum) == 0x80000000);
    CHECK(without_nan(uint8, nan, NoNan::minimum) == 0);
  }
  CHECK(without_nan(e2m1, quiet, NoNan::opposite_zero) == 0x8);
  CHECK(without_nan(e2m1, quiet_negative, NoNan::opposite_zero) == 0x0);
  CHECK(without_nan(int8, quiet, NoNan::opposite_zero) == 0);
}

TEST_CASE("what has no code becomes a NaN of its sign") {
  const Value large = decode(fp32, 0x47C35000);  // 100000
  const Value negative = {Kind::finite, true, large.exponent, large.significand};
  CHECK(encode(e4m3, large) == 0x7F);
  CHECK(encode(e4m3, negative) == 0xFF);
  CHECK(encode(e4m3, infinity_value(true)) == 0xFF);
  CHECK(encode(e4m3fnuz, negative) == 0x80);
  CHECK(encode(e5m2, negative) == 0xFC);
  CHECK(encode(e8m0, negative) == 0xFF);
  CHECK(encode(ue4m3, negative) == 0x7F);
  CHECK(encode(e8m0, negative, Rounding::nearest_even, overflow_saturate) == 0);
  CHECK(encode(ue4m3, infinity_value(true), Rounding::nearest_even, overflow_saturate) == 0);
  CHECK(encode(e2m1, negative) == 0xF);
}

TEST_CASE("all_ones_of_nan tells NaNs from numbers that overflowed") {
  constexpr Overflow rule = {.nan = Overflow::Nan::all_ones_of_nan};
  const Value negative = {Kind::finite, true, 100, 1};
  for (const Rounding rounding : {Rounding::nearest_even, Rounding::downward}) {
    CHECK(encode(e4m3, quiet_negative, rounding, rule) == 0x7F);
    CHECK(encode(e4m3, negative, rounding, rule) == 0xFF);
    CHECK(encode(e4m3, infinity_value(true), rounding, rule) == 0xFF);
    CHECK(encode(e4m3, infinity_value(false), rounding, rule) == 0x7F);
    CHECK(encode(e4m3fnuz, negative, rounding, rule) == 0x80);
    CHECK(encode(fp16, quiet_negative, rounding, rule) == 0x7FFF);
    CHECK(encode(fp16, negative, rounding, rule) == 0xFC00);
  }
}

TEST_CASE("operations pass on their first NaN, quieted") {
  CHECK(fp32_code(add(e(nan_one), e(nan_two))) == quieted_one);
  CHECK(fp32_code(add(e(nan_two), e(nan_one))) == nan_two);
  CHECK(fp32_code(add(e(infinity), e(nan_two))) == nan_two);
  CHECK(fp32_code(subtract(e(one), e(nan_two))) == nan_two);
  CHECK(fp32_code(subtract(e(one), e(nan_one))) == quieted_one);
  CHECK(fp32_code(multiply(v(nan_one), v(nan_two))) == quieted_one);
  CHECK(fp32_code(multiply(v(minus | one), v(nan_two))) == nan_two);
  CHECK(fp32_code(divide(v(0), v(nan_two))) == nan_two);
  CHECK(fp32_code(divide(v(nan_two), v(nan_one))) == nan_two);
  CHECK(fp32_code(square_root(v(nan_one))) == quieted_one);
  CHECK(fp32_code(square_root(v(nan_two))) == nan_two);
  CHECK(fp32_code(fused_multiply_add(v(nan_one), v(nan_two), v(nan_two))) == quieted_one);
  CHECK(fp32_code(fused_multiply_add(v(one), v(nan_two), v(nan_one))) == nan_two);
  CHECK(fp32_code(fused_multiply_add(v(one), v(one), v(nan_one))) == quieted_one);
  CHECK(fp32_code(fused_multiply_add(v(infinity), v(0), v(nan_two))) == nan_two);
}

TEST_CASE("invalid operations give the positive quiet NaN without payload") {
  CHECK(fp32_code(add(e(infinity), e(minus | infinity))) == default_nan);
  CHECK(fp32_code(subtract(e(minus | infinity), e(minus | infinity))) == default_nan);
  CHECK(fp32_code(multiply(v(minus), v(infinity))) == default_nan);
  CHECK(fp32_code(divide(v(minus), v(0))) == default_nan);
  CHECK(fp32_code(divide(v(minus | infinity), v(infinity))) == default_nan);
  CHECK(fp32_code(square_root(v(minus | one))) == default_nan);
  CHECK(fp32_code(square_root(v(minus | infinity))) == default_nan);
  CHECK(fp32_code(fused_multiply_add(v(infinity), v(minus), v(one))) == default_nan);
  CHECK(fp32_code(fused_multiply_add(v(one), v(infinity), v(minus | infinity))) == default_nan);
}

TEST_CASE("signs of zero results") {
  for (const bool downward : {false, true}) {
    const std::uint64_t cancelled = downward ? minus : 0;
    CHECK(fp32_code(subtract(e(one), e(one), downward)) == cancelled);
    CHECK(fp32_code(add(e(0), e(minus), downward)) == cancelled);
    CHECK(fp32_code(subtract(e(minus), e(minus), downward)) == cancelled);
    CHECK(fp32_code(add(e(minus), e(minus), downward)) == minus);
    CHECK(fp32_code(subtract(e(minus), e(0), downward)) == minus);
    CHECK(fp32_code(add(e(0), e(0), downward)) == 0);
    CHECK(fp32_code(fused_multiply_add(v(one), v(one), v(minus | one), downward)) == cancelled);
    CHECK(fp32_code(fused_multiply_add(v(minus), v(one), v(minus), downward)) == minus);
    CHECK(fp32_code(fused_multiply_add(v(minus), v(one), v(0), downward)) == cancelled);
  }
  CHECK(fp32_code(multiply(v(minus), v(one))) == minus);
  CHECK(fp32_code(divide(v(one), v(minus | infinity))) == minus);
  CHECK(fp32_code(divide(v(one), v(minus))) == (minus | infinity));
  CHECK(fp32_code(square_root(v(minus))) == minus);
}

TEST_CASE("zeros of formats with and without a negative one") {
  const Value tiny = {Kind::finite, true, -300, 1};
  for (const Value& x : {zero_value(true), tiny}) {
    CHECK(encode(fp16, x) == 0x8000);
    CHECK(encode(e4m3, x) == 0x80);
    CHECK(encode(e2m1, x) == 0x8);
    CHECK(encode(e4m3fnuz, x) == 0);
    CHECK(encode(e5m2fnuz, x) == 0);
    CHECK(encode(int8, x) == 0);
  }
  CHECK(encode(uint8, zero_value(true)) == 0);
  CHECK(encode(ue4m3, zero_value(true)) == 0);
  CHECK(encode(e8m0, zero_value(true)) == 0);
  CHECK(encode(e8m0, zero_value(false), Rounding::nearest_even,
               {.no_zero = Overflow::NoZero::nan}) == 0xFF);
  CHECK(encode(e4m3fnuz, tiny, Rounding::downward) == 0x81);
  CHECK(encode(int8, tiny, Rounding::downward) == 0xFF);
  CHECK(encode(uint8, tiny, Rounding::downward) == 0);
}

TEST_CASE("ties and limits of integers, by hand") {
  const auto halves = [](int count, const Format& to, Rounding rounding) {
    const bool negative = count < 0;
    return encode(
        to,
        Value{Kind::finite, negative, -1, static_cast<std::uint64_t>(negative ? -count : count)},
        rounding);
  };
  // 0.5, 1.5, 2.5, -2.5, 127.5, -128.5, -127.5
  CHECK(halves(1, int8, Rounding::nearest_even) == 0);
  CHECK(halves(3, int8, Rounding::nearest_even) == 2);
  CHECK(halves(5, int8, Rounding::nearest_even) == 2);
  CHECK(halves(-5, int8, Rounding::nearest_even) == 0xFE);
  CHECK(halves(5, int8, Rounding::nearest_away) == 3);
  CHECK(halves(-5, int8, Rounding::nearest_away) == 0xFD);
  CHECK(halves(5, int8, Rounding::to_odd) == 3);
  CHECK(halves(7, int8, Rounding::to_odd) == 3);
  CHECK(halves(-5, int8, Rounding::upward) == 0xFE);
  CHECK(halves(-5, int8, Rounding::downward) == 0xFD);
  CHECK(halves(255, int8, Rounding::nearest_even) == 0x7F);
  CHECK(halves(-257, int8, Rounding::downward) == 0x80);
  CHECK(halves(-255, int8, Rounding::nearest_even) == 0x80);
  CHECK(halves(511, uint8, Rounding::upward) == 0xFF);
  CHECK(halves(-1, uint8, Rounding::downward) == 0);
  CHECK(encode(int32, decode(fp32, 0x4F000000)) == 0x7FFFFFFF);          // 2^31
  CHECK(encode(int32, decode(fp32, 0xCF000000)) == 0x80000000);          // -2^31
  CHECK(encode(int32, decode(fp64, 0x41DFFFFFFFE00000)) == 0x7FFFFFFF);  // 2^31 - 0.5
  CHECK(encode(int32, decode(fp64, 0x41DFFFFFFFE00000), Rounding::toward_zero) == 0x7FFFFFFF);
  CHECK(encode(int32, infinity_value(true)) == 0x80000000);
}

}  // namespace guardbit::formats
