#include <random>

#include "formats/rounding.hpp"
#include "tests/catch.hpp"
#include "tests/oracle/number.hpp"

/// shift_right_and_round is the definition of rounding: the two integers around
/// (significand + tail) / 2^shift and a choice between them. The model rounds with nothing else.
namespace guardbit::formats {
namespace {

using oracle::Integer;

constexpr Rounding deterministic[] = {Rounding::nearest_even, Rounding::nearest_away,
                                      Rounding::toward_zero,  Rounding::upward,
                                      Rounding::downward,     Rounding::to_odd};

/// Whether `rest` of `whole` above an even or odd integer goes up, rest strictly between.
template <typename Number>
constexpr bool goes_up(const Number& rest, const Number& whole, bool odd, bool negative,
                       Rounding rounding) {
  const Number twice = rest + rest;
  switch (rounding) {
    case Rounding::nearest_even: return twice > whole || (twice == whole && odd);
    case Rounding::nearest_away: return twice >= whole;
    case Rounding::upward: return !negative;
    case Rounding::downward: return negative;
    case Rounding::to_odd: return !odd;
    case Rounding::toward_zero:
    case Rounding::stochastic: break;
  }
  return false;
}

/// `quarters` is the tail in quarters, 0 to 3: any tail between 0 and 1 must act alike.
template <typename Number>
constexpr bool is_definition(std::uint64_t significand, int shift, unsigned quarters, bool negative,
                             Rounding rounding) {
  const Number value = Number(significand) * 4 + quarters;
  const Number whole = Number(4) << static_cast<unsigned>(shift);
  const Number kept = value / whole;
  const Number rest = value - kept * whole;
  const bool odd = (kept & 1) != 0;
  const bool up = rest != 0 && goes_up(rest, whole, odd, negative, rounding);
  const Rounded rounded =
      shift_right_and_round(significand, shift, quarters != 0, negative, rounding);
  return rounded.significand == static_cast<std::uint64_t>(kept + (up ? 1 : 0)) &&
         rounded.inexact == (rest != 0);
}

static_assert(is_definition<std::uint64_t>(0b1011, 2, 0, false, Rounding::nearest_even));
static_assert(is_definition<std::uint64_t>(0b1010, 2, 0, false, Rounding::nearest_even));
static_assert(is_definition<std::uint64_t>(0b1010, 2, 1, false, Rounding::nearest_even));
static_assert(is_definition<std::uint64_t>(0b0110, 2, 0, true, Rounding::nearest_away));
static_assert(is_definition<std::uint64_t>(0b1001, 2, 0, true, Rounding::downward));
static_assert(is_definition<std::uint64_t>(0b1000, 3, 3, true, Rounding::upward));
static_assert(is_definition<std::uint64_t>(0b1000, 3, 3, true, Rounding::to_odd));
static_assert(shift_right_and_round(uint128{5}, -3, false, false, Rounding::upward).significand ==
              40);
static_assert(!shift_right_and_round(uint128{5}, -3, false, false, Rounding::upward).inexact);

}  // namespace

TEST_CASE("rounding a shift is its definition for every significand of 10 bits") {
  for (const Rounding rounding : deterministic) {
    for (int shift = 0; shift <= 12; ++shift) {
      bool holds = true;
      for (std::uint64_t significand = 0; significand < 1024; ++significand) {
        for (unsigned quarters = 0; quarters < 4; ++quarters) {
          // What a tail is next to half of it matters to the nearest ones unless a bit is shifted
          // out.
          const bool nearest =
              rounding == Rounding::nearest_even || rounding == Rounding::nearest_away;
          if (shift == 0 && quarters > 1 && nearest) continue;
          for (const bool negative : {false, true}) {
            holds = holds &&
                    is_definition<std::uint64_t>(significand, shift, quarters, negative, rounding);
          }
        }
      }
      CAPTURE(static_cast<int>(rounding), shift);
      CHECK(holds);
    }
  }
}

TEST_CASE(
    "random bits are added below the last kept place, for every fraction and random integer") {
  for (int shift = 0; shift <= 7; ++shift) {
    for (int count = 0; count <= 7; ++count) {
      bool holds = true;
      for (std::uint64_t significand = 0; significand < 256; ++significand) {
        for (std::uint64_t random = 0; random < std::uint64_t{1} << count; ++random) {
          // Fraction cut to `count` bits, in units of 2^-14.
          const std::uint64_t scaled = significand << (14 - shift);
          const std::uint64_t unit = std::uint64_t{1} << (14 - count);
          const std::uint64_t fraction = (scaled & 0x3FFF) / unit;
          const std::uint64_t expected = (significand >> shift) + ((fraction + random) >> count);
          const auto rounded = shift_right_and_round(significand, shift, false, false,
                                                     Rounding::stochastic, {random, count});
          holds = holds && rounded.significand == expected;
          // A tail below the bits that are looked at changes nothing.
          if (count <= shift) {
            const auto sticky = shift_right_and_round(significand, shift, true, true,
                                                      Rounding::stochastic, {random, count});
            holds = holds && sticky.significand == expected && sticky.inexact;
          }
        }
      }
      CAPTURE(shift, count);
      CHECK(holds);
    }
  }
}

TEST_CASE("rounding a shift is its definition across the whole word and past it") {
  std::mt19937_64 generator(1);
  bool holds = true;
  for (int i = 0; i < 300'000; ++i) {
    const uint128 word = uint128{generator()} << 64 | generator();
    // Runs of zeros and ones make ties and near ties.
    const auto cut = static_cast<int>(generator() % 128);
    const uint128 low = (uint128{1} << cut) - 1;
    const uint128 significand = i % 3 == 0 ? word : i % 3 == 1 ? word & ~low : word | low;
    const int shift = static_cast<int>(generator() % 140) + 1;
    const bool sticky = generator() % 2 != 0;
    const bool negative = generator() % 2 != 0;
    const Rounding rounding = deterministic[generator() % 6];

    const Integer value = (((Integer(static_cast<std::uint64_t>(significand >> 64)) << 64) +
                            static_cast<std::uint64_t>(significand))
                           << 1) +
                          (sticky ? 1 : 0);
    const Integer whole = Integer(2) << static_cast<unsigned>(shift);
    const Integer kept = value / whole;
    const Integer rest = value - kept * whole;
    const bool up = rest != 0 && goes_up(rest, whole, bit_test(kept, 0), negative, rounding);
    const Integer expected = kept + (up ? 1 : 0);
    const Rounded rounded = shift_right_and_round(significand, shift, sticky, negative, rounding);
    holds = holds &&
            Integer(static_cast<std::uint64_t>(rounded.significand >> 64)) == expected >> 64 &&
            static_cast<std::uint64_t>(rounded.significand) ==
                static_cast<std::uint64_t>(expected & ~std::uint64_t{0}) &&
            rounded.inexact == (rest != 0);
  }
  CHECK(holds);
}

static_assert(leading_bit(0) == -1 && leading_bit(1) == 0 && leading_bit(uint128{1} << 127) == 127);

TEST_CASE("leading_bit is the floor of the logarithm") {
  CHECK(leading_bit(0) == -1);
  for (int bit = 0; bit < 128; ++bit) {
    const uint128 power = uint128{1} << bit;
    CHECK(leading_bit(power) == bit);
    CHECK(leading_bit(power | (power - 1)) == bit);
    CHECK(leading_bit(power - 1) == bit - 1);
  }
}

}  // namespace guardbit::formats
