#include <random>

#include "formats/codec.hpp"
#include "tests/catch.hpp"
#include "tests/formats/judged_encode.hpp"

namespace guardbit::formats {

TEST_CASE("infinity_always overflows under every rounding") {
  constexpr Overflow always = {.finite = Overflow::Finite::infinity_always};
  Mismatches mismatches;
  for (const JudgedFormat& to : narrow_formats) {
    if (is_integer(to.model) || (!oracle::has_infinity(to.judge) && !oracle::has_nan(to.judge))) {
      continue;
    }
    // One exponent bit more and no specials: the rounded number before any overflow.
    oracle::FormatParameters wider = to.judge;
    wider.specials = oracle::FormatParameters::Specials::none;
    wider.exponent_bits += 1;
    wider.bits += 1;
    const std::uint64_t last = maximum_code(to);
    for (std::uint64_t code = last - 2; code <= last + 2; ++code) {
      for (const Part& part : all_parts) {
        for (const JudgedRounding& rounding : judged_roundings) {
          const Point point = point_in(gap_above(to, code), part.part, false, part.sticky);
          const std::uint64_t rounded = oracle::encode(wider, point.judge, rounding.judge);
          const std::uint64_t judge =
              rounded <= last ? rounded
                              : oracle::encode(to.judge, oracle::infinity(false), rounding.judge);
          const std::uint64_t model = encode(to.model, point.model, rounding.model, always);
          mismatches.compare(same_code(to, model, judge), model, judge, [&](auto& out) {
            out << to.name << ' ' << code << ' ' << part.part << ' ' << rounding.name;
          });
        }
      }
    }
  }
  CHECK(mismatches.report() == "");
}

TEST_CASE("integers wrap modulo 2^bits") {
  constexpr Overflow wrap = {.finite = Overflow::Finite::wrap};
  Mismatches mismatches;
  const auto wide = oracle::integer(64, true);
  const auto judge_wrap = [&](const oracle::Number& number) {
    for (const JudgedFormat& to : every_format()) {
      if (!is_integer(to.model)) continue;
      for (const JudgedRounding& rounding : judged_roundings) {
        const std::uint64_t model = encode(to.model, as_model(number), rounding.model, wrap);
        const std::uint64_t judge =
            oracle::encode(wide, number, rounding.judge) & code_mask(to.model);
        mismatches.compare(model == judge, model, judge, [&](auto& out) {
          out << (number.negative ? "-" : "") << number.magnitude.significand << " * 2^" << std::dec
              << number.magnitude.exponent << " to " << to.name << ", " << rounding.name;
        });
      }
    }
  };
  for (std::uint64_t code = 0; code < 0x10000; code += 5) {
    const oracle::Number number = oracle::decode(oracle::fp16, code);
    if (number.is_finite()) judge_wrap(number);
  }
  std::mt19937_64 generator(4);
  for (int i = 0; i < 3000; ++i) {
    const std::int64_t significand = static_cast<std::int64_t>(generator()) >> generator() % 60;
    const int exponent = -static_cast<int>(generator() % 70) - 2;
    judge_wrap(oracle::dyadic(significand, exponent));
  }
  CHECK(mismatches.report() == "");

  // Past the judge's 64 bits: the low bits of the number itself.
  const auto at = [&](std::uint64_t significand, int exponent, bool negative, const Format& to) {
    return encode(to, Unrounded{Kind::finite, negative, exponent, significand, false},
                  Rounding::nearest_even, wrap);
  };
  CHECK(at(5, 62, false, int64) == std::uint64_t{1} << 62);
  CHECK(at(5, 62, true, int64) == 3 * (std::uint64_t{1} << 62));
  CHECK(at(3, 63, false, uint64) == std::uint64_t{1} << 63);
  CHECK(at(3, 64, false, uint64) == 0);
  CHECK(at(3, 31, true, uint32) == std::uint64_t{1} << 31);
  CHECK(at(~std::uint64_t{0}, 1, false, uint64) == ~std::uint64_t{1});
  for (const int exponent : {65, 100, 126, 127, 128, 1000})
    CHECK(at(7, exponent, true, int32) == 0);
  CHECK(encode(int32, infinity_value(false), Rounding::nearest_even, wrap) == 0x7FFFFFFF);
  CHECK(encode(int32, infinity_value(true), Rounding::nearest_even, wrap) == 0x80000000);
}

}  // namespace guardbit::formats
