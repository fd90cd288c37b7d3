#include <algorithm>
#include <random>

#include "formats/arithmetic.hpp"
#include "tests/catch.hpp"
#include "tests/oracle/number.hpp"

/// Sums, quotients and roots of any distance fit one word and a tail: the word is the exact result
/// rounded down, the tail says whether something is missing, and the word is long enough for every
/// rounding (64 bits and more below a 53-bit result, where anything is missing).
namespace guardbit::formats {
namespace {

using oracle::Integer;

Integer integer_of(uint128 x) {
  return (Integer(static_cast<std::uint64_t>(x >> 64)) << 64) + static_cast<std::uint64_t>(x);
}
Integer shifted(const Integer& x, int left) {
  return left >= 0 ? Integer(x << static_cast<unsigned>(left))
                   : Integer(x >> static_cast<unsigned>(-left));
}

/// x + y beside exact integers; an inexact sum must have `bits` bits at least.
bool sum_is_exact(const Unrounded& x, const Unrounded& y, int bits = 126) {
  const int unit = std::min(x.exponent, y.exponent);
  const auto signed_units = [&](const Unrounded& v) {
    const Integer units = integer_of(v.significand) << static_cast<unsigned>(v.exponent - unit);
    return v.negative ? Integer(-units) : units;
  };
  const Integer total = signed_units(x) + signed_units(y);
  const Unrounded sum = add(x, y);
  if (total.is_zero()) return sum.kind == Kind::zero && !sum.negative;
  if (sum.kind != Kind::finite || sum.negative != (total.sign() < 0)) return false;
  const Integer magnitude = abs(total);
  const Integer floor = shifted(magnitude, unit - sum.exponent);
  const bool exact =
      sum.exponent <= unit || floor << static_cast<unsigned>(sum.exponent - unit) == magnitude;
  return integer_of(sum.significand) == floor && sum.sticky == !exact &&
         (exact || leading_bit(sum.significand) >= bits - 1);
}

constexpr Unrounded number(std::uint64_t significand, int exponent, bool negative) {
  return {Kind::finite, negative, exponent, significand, false};
}

// 2^130 - 1 = (2^130 - 8 units of the word) + a tail, with no borrow lost.
constexpr Unrounded borrowed = add(number(1, 130, false), number(1, 0, true));
static_assert(borrowed.sticky && borrowed.exponent == 3 &&
              borrowed.significand == ~uint128{0} >> 1);
static_assert(add(number(1, 127, false), number(1, 0, true)).sticky == false);
static_assert(add(number(1, 300, false), number(1, 0, false)).significand == uint128{1} << 127);
static_assert(add(number(1, 300, false), number(1, 0, false)).sticky);

}  // namespace

TEST_CASE("sums of all pairs of 5 bits at every distance around the word") {
  for (const int exponent :
       {-260, -140, -131, -130, -129, -128, -127, -126, -125, -124, -123, -122, -121, -120, -65,
        -64,  -63,  -8,   -5,   -4,   -3,   -2,   -1,   0,    1,    7,    123,  128,  200}) {
    bool holds = true;
    for (std::uint64_t x = 1; x < 32; ++x) {
      for (std::uint64_t y = 1; y < 32; ++y) {
        for (const bool negative : {false, true}) {
          holds = holds && sum_is_exact(number(x, 0, negative), number(y, exponent, false)) &&
                  sum_is_exact(number(x, 0, negative), number(y, exponent, true));
        }
      }
    }
    CAPTURE(exponent);
    CHECK(holds);
  }
}

TEST_CASE("sums of 106-bit products and 53-bit numbers") {
  std::mt19937_64 generator(1);
  bool holds = true;
  for (int i = 0; i < 200'000; ++i) {
    const std::uint64_t a = generator() >> 11 | std::uint64_t{1} << 52;
    const std::uint64_t b = generator() >> 11 | std::uint64_t{1} << 52;
    const Unrounded product = multiply({Kind::finite, false, 0, a}, {Kind::finite, false, 0, b});
    // Near the product itself, so that it cancels, or anywhere.
    const int distance =
        i % 2 == 0 ? static_cast<int>(generator() % 4) : static_cast<int>(generator() % 400) - 200;
    const auto top = static_cast<std::uint64_t>(product.significand >> 53);
    const std::uint64_t other = i % 4 == 0 ? top : generator() >> 11 | 1;
    holds = holds && sum_is_exact(product, number(other, 53 - distance, generator() % 4 != 0));
  }
  CHECK(holds);
}

TEST_CASE("sums of 128-bit products lose nothing that shows") {
  std::mt19937_64 generator(2);
  bool holds = true;
  for (int i = 0; i < 100'000; ++i) {
    const std::uint64_t a = ~(generator() >> generator() % 64);
    const std::uint64_t b = ~(generator() >> generator() % 64);
    const Unrounded product =
        multiply({Kind::finite, false, 0, a | 1}, {Kind::finite, false, 0, b | 1});
    const Unrounded other =
        number(generator() | 1, static_cast<int>(generator() % 140) - 70, i % 2 != 0);
    // A full word can lose its last bit and then cancel, but products that full are not next to a
    // power of two.
    holds = holds && sum_is_exact(product, other, 62);
  }
  CHECK(holds);
}

TEST_CASE("quotients fill the word") {
  bool holds = true;
  const auto check = [&](std::uint64_t x, std::uint64_t y) {
    const Unrounded quotient = divide({Kind::finite, false, 0, x}, {Kind::finite, true, 0, y});
    const Integer dividend = Integer(x) << static_cast<unsigned>(-quotient.exponent);
    holds = holds && quotient.negative && quotient.exponent <= 0 &&
            leading_bit(quotient.significand) == 127 &&
            integer_of(quotient.significand) == dividend / y &&
            quotient.sticky == (dividend % y != 0);
  };
  for (std::uint64_t x = 1; x < 256; ++x) {
    for (std::uint64_t y = 1; y < 256; ++y) check(x, y);
  }
  std::mt19937_64 generator(3);
  for (int i = 0; i < 100'000; ++i) {
    check((generator() >> generator() % 64) | 1, (generator() >> generator() % 64) | 1);
  }
  check(~std::uint64_t{0}, 1);
  check(1, ~std::uint64_t{0});
  check(std::uint64_t{1} << 63, ~std::uint64_t{0});
  CHECK(holds);
}

TEST_CASE("roots have 120 bits") {
  bool holds = true;
  const auto check = [&](std::uint64_t x, int exponent) {
    const Unrounded root = square_root({Kind::finite, false, exponent, x});
    const Integer whole = integer_of(root.significand);
    const Integer radicand = Integer(x) << static_cast<unsigned>(exponent - 2 * root.exponent);
    holds = holds && leading_bit(root.significand) == 119 && whole * whole <= radicand &&
            (whole + 1) * (whole + 1) > radicand && root.sticky == (whole * whole != radicand);
  };
  for (std::uint64_t x = 1; x < 4096; ++x) {
    for (const int exponent : {-3, -2, -1, 0, 1}) check(x, exponent);
  }
  std::mt19937_64 generator(4);
  for (int i = 0; i < 20'000; ++i) {
    check((generator() >> generator() % 64) | 1, static_cast<int>(generator() % 2000) - 1000);
  }
  check(~std::uint64_t{0}, 0);
  check(~std::uint64_t{0}, -1);
  CHECK(holds);
}

}  // namespace guardbit::formats
