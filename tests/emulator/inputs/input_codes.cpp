#include "tests/emulator/inputs/input_codes.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "formats/codec.hpp"
#include "formats/format_catalogue.hpp"

namespace guardbit::tests {

namespace {

/// Fractions are dense or have few bits, so that ties and exact sums occur.
std::uint64_t random_fraction(Random& random) {
  const std::uint64_t bits = random.bits();
  switch (random.below(4)) {
    case 0: return bits & random.bits() & random.bits();
    case 1: return ~std::uint64_t{0} << random.below(56);
    default: return bits;
  }
}

}  // namespace

std::uint64_t code_with_exponent(const Format& f, bool negative, int exponent,
                                 std::uint64_t fraction) {
  const emulator::inputs::OperandWords x = emulator::inputs::operand_words(f);
  if (exponent > x.highest) fraction = ~std::uint64_t{0};
  if (f.encoding == formats::Encoding::power_of_two) exponent = std::max(exponent, x.lowest);
  // A word's fraction begins below the leading bit, also that of a subnormal number.
  const int above = std::clamp(x.least_normal - exponent, 0, f.fraction_bits);
  return word_with_exponent(x, negative, exponent, fraction << above << x.ignored) >> x.ignored;
}

bool is_floating(const Format& f) { return f.encoding == formats::Encoding::floating; }

double value_of(const Format& f, std::uint64_t code) {
  const formats::Value v = formats::decode(f, code);
  double magnitude = 0;
  if (v.kind == formats::Kind::nan) return std::nan("");
  if (v.kind == formats::Kind::infinity) magnitude = HUGE_VAL;
  if (v.kind == formats::Kind::finite)
    magnitude = std::ldexp(static_cast<double>(v.significand), v.exponent);
  return v.negative ? -magnitude : magnitude;
}

std::uint64_t nearest_code(const Format& f, double value) {
  return formats::convert(formats::fp64, std::bit_cast<std::uint64_t>(value), f,
                          formats::Rounding::nearest_even, formats::overflow_saturate);
}

std::uint64_t zero_code(const Format& f, bool negative) {
  if (f.encoding == formats::Encoding::power_of_two) return 0;
  return negative && formats::has_negative_zero(f) ? formats::sign_mask(f) : 0;
}

std::uint64_t random_code(const Format& f, Random& random) {
  return random.bits() & formats::code_mask(f);
}

std::uint64_t finite_code(const Format& f, Random& random) {
  while (true) {
    const std::uint64_t code = random_code(f, random);
    const formats::Kind kind = formats::decode(f, code).kind;
    if (kind == formats::Kind::finite || kind == formats::Kind::zero) return code;
  }
}

std::uint64_t code_between(const Format& f, int low, int high, Random& random) {
  const bool negative = random.one_in(2);
  const int exponent = random.between(low, high);
  return code_with_exponent(f, negative, exponent, random_fraction(random));
}

int lowest_exponent(const Format& f) { return formats::min_exponent(f) - f.fraction_bits; }

std::uint64_t subnormal_code(const Format& f, Random& random) {
  return code_between(f, lowest_exponent(f), formats::min_exponent(f), random);
}

std::uint64_t special_code(const Format& f, Random& random) {
  const std::uint64_t sign = random.one_in(2) ? formats::sign_mask(f) : 0;
  const std::uint64_t quiet = std::uint64_t{1} << std::max(0, f.fraction_bits - 1);
  const std::uint64_t payload = random.bits() & (quiet - 1);
  const auto exactly = [&](std::uint64_t code) { return (sign | code) & formats::code_mask(f); };
  const bool ieee = f.specials == formats::Specials::ieee;
  switch (random.below(12)) {
    case 0:
      return ieee ? exactly(formats::infinity_code(f) | quiet)
                  : exactly(formats::all_ones_nan_code(f));
    case 1:
      return ieee ? exactly(formats::infinity_code(f) | quiet | payload)
                  : exactly(formats::quiet_nan_code(f));
    case 2:
      return ieee ? exactly(formats::infinity_code(f) | std::max<std::uint64_t>(1, payload))
                  : exactly(0);
    case 3: return exactly(formats::all_ones_nan_code(f));
    case 4:
    case 5: return exactly(formats::infinity_code(f));
    case 6:
    case 7: return exactly(0);
    case 8: return exactly(1);
    case 9: return exactly(formats::min_normal_code(f) - 1);
    case 10: return exactly(formats::max_finite_code(f));
    default: return code_with_exponent(f, sign != 0, 0, 0);
  }
}

std::uint64_t infinity_like(const Format& f, bool negative) {
  const std::uint64_t magnitude =
      formats::has_infinity(f) ? formats::infinity_code(f) : formats::max_finite_code(f);
  return (negative ? formats::sign_mask(f) : 0) | magnitude;
}

}  // namespace guardbit::tests
