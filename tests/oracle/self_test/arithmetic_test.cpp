#include "tests/oracle/arithmetic.hpp"

#include <bit>
#include <cmath>
#include <random>

#include "tests/catch.hpp"

namespace {

using namespace guardbit::oracle;
using Rational = boost::multiprecision::cpp_rational;

std::uint64_t code_of(double value) { return std::bit_cast<std::uint64_t>(value); }

Rational rational(const Dyadic& value) {
  const boost::multiprecision::cpp_int significand(value.significand);
  boost::multiprecision::cpp_int power = 1;
  power <<= static_cast<unsigned>(std::abs(value.exponent));
  return value.exponent < 0 ? Rational(significand, power) : Rational(significand * power);
}

}  // namespace

TEST_CASE("special values of the operations") {
  const Number one = dyadic(1);
  const Number minus_zero = zero(true);
  using Operation = std::uint64_t(const FormatParameters&, const Number&, const Number&,
                                  const Rounding&, const Overflow&);
  const auto nearest = [](Operation& operation, const Number& a, const Number& b) {
    return operation(fp16, a, b, nearest_even, ieee);
  };
  CHECK(nearest(add, zero(), minus_zero) == 0);
  CHECK(nearest(add, minus_zero, minus_zero) == 0x8000);
  CHECK(nearest(add, one, negated(one)) == 0);
  CHECK(add(fp16, one, negated(one), downward) == 0x8000);
  CHECK(sub(fp16, zero(), zero(), downward) == 0x8000);
  CHECK(is_nan(fp16, nearest(add, infinity(false), infinity(true))));
  CHECK(nearest(sub, infinity(false), infinity(true)) == 0x7c00);
  CHECK(is_nan(fp16, nearest(mul, infinity(false), minus_zero)));
  CHECK(nearest(mul, negated(one), zero()) == 0x8000);
  CHECK(nearest(div, one, minus_zero) == 0xfc00);
  CHECK(is_nan(fp16, nearest(div, zero(), minus_zero)));
  CHECK(is_nan(fp16, nearest(div, infinity(false), infinity(false))));
  CHECK(nearest(div, negated(one), infinity(false)) == 0x8000);
  CHECK(sqrt(fp16, minus_zero, nearest_even) == 0x8000);
  CHECK(is_nan(fp16, sqrt(fp16, negated(one), nearest_even)));
  CHECK(sqrt(fp16, infinity(false), nearest_even) == 0x7c00);
  CHECK(is_nan(fp16, fma(fp16, infinity(false), one, infinity(true), nearest_even)));
  CHECK(fma(fp16, one, minus_zero, minus_zero, nearest_even) == 0x8000);
  CHECK(fma(fp16, one, minus_zero, zero(), nearest_even) == 0);
}

TEST_CASE("binary64 operations equal the machine's") {
  std::mt19937_64 random(3);
  for (int i = 0; i < 30000; ++i) {
    std::uint64_t codes[3];
    for (std::uint64_t& code : codes) {
      code = random();
      // Half of the cases have exponents near each other, so that all operands matter.
      if (i % 2 == 0) code = (code & 0x800fffffffffffff) | (1013 + (code >> 52) % 20) << 52;
    }
    const double a = std::bit_cast<double>(codes[0]);
    const double b = std::bit_cast<double>(codes[1]);
    const double c = std::bit_cast<double>(codes[2]);
    const Number x = decode(fp64, codes[0]);
    const Number y = decode(fp64, codes[1]);
    const Number z = decode(fp64, codes[2]);
    const auto same = [](std::uint64_t code, double expected) {
      return std::isnan(expected) ? is_nan(fp64, code) : code == code_of(expected);
    };
    REQUIRE(same(add(fp64, x, y, nearest_even), a + b));
    REQUIRE(same(sub(fp64, x, y, nearest_even), a - b));
    REQUIRE(same(mul(fp64, x, y, nearest_even), a * b));
    REQUIRE(same(div(fp64, x, y, nearest_even), a / b));
    REQUIRE(same(fma(fp64, x, y, z, nearest_even), std::fma(a, b, c)));
    REQUIRE(same(sqrt(fp64, x, nearest_even), std::sqrt(a)));
  }
}

TEST_CASE("quotients and roots bracket the rational truth") {
  std::mt19937_64 random(4);
  for (int i = 0; i < 2000; ++i) {
    const Number a =
        dyadic(static_cast<std::int64_t>(random() >> 2) + 1, static_cast<int>(random() % 60) - 90);
    const Number b =
        dyadic(static_cast<std::int64_t>(random() >> 30) + 1, static_cast<int>(random() % 60) - 60);
    const Rational exact = rational(a.magnitude) / rational(b.magnitude);
    const Number below = decode(bf16, div(bf16, a, b, downward));
    const Number above = decode(bf16, div(bf16, a, b, upward));
    REQUIRE(rational(below.magnitude) <= exact);
    REQUIRE((above.is_infinity() || rational(above.magnitude) >= exact));
    const Number root_below = decode(bf16, sqrt(bf16, a, downward));
    const Number root_above = decode(bf16, sqrt(bf16, a, upward));
    const Rational low = rational(root_below.magnitude);
    const Rational high = rational(root_above.magnitude);
    REQUIRE(low * low <= rational(a.magnitude));
    REQUIRE(high * high >= rational(a.magnitude));
    if (!above.is_infinity())
      REQUIRE((encode(bf16, above, nearest_even) - encode(bf16, below, nearest_even)) <= 1);
    REQUIRE(encode(bf16, root_above, nearest_even) - encode(bf16, root_below, nearest_even) <= 1);
  }
}

TEST_CASE("an inexact quotient beside a tie is not taken for the tie") {
  // (1 + 2^-11) * (2^60 + 1) / 2^60 lies 2^-60 above fp16's tie between 1 and 1 + 2^-10.
  const Number numerator = dyadic((std::int64_t{1} << 11) + 1, -11);
  CHECK(div(fp16, numerator, dyadic(1), nearest_even) == 0x3c00);
  const Number slightly_less_than_one = dyadic((std::int64_t{1} << 60) - 1, -60);
  CHECK(div(fp16, numerator, slightly_less_than_one, nearest_even) == 0x3c01);
  CHECK(sqrt(fp16, dyadic(2), toward_zero) == 0x3da8);
}
