#pragma once

#include <cmath>
#include <cstdint>

#include "emulator/inputs/input_draw.hpp"
#include "formats/codec.hpp"
#include "formats/format.hpp"

// A word is a code as the instruction's registers hold it: TF32 in the upper 19 bits of 32 (the
// unit ignores the rest, which recordings fill), everything else as it is.
namespace guardbit::gpu {

using formats::Format;

constexpr int ignored_bits(const Format& f) { return formats::container_shift(f); }
constexpr int word_bits(const Format& f) { return formats::bits(f) + ignored_bits(f); }
constexpr std::uint64_t word_mask(const Format& f) { return formats::low_bits(word_bits(f)); }
/// The highest bit: the sign where there is one.
constexpr std::uint64_t sign_bit(const Format& f) { return std::uint64_t{1} << (word_bits(f) - 1); }
constexpr int word_fraction_bits(const Format& f) { return f.fraction_bits + ignored_bits(f); }
constexpr std::uint64_t word_fraction_mask(const Format& f) {
  return formats::low_bits(word_fraction_bits(f));
}
/// All exponent bits: infinity where the format has it.
constexpr std::uint64_t infinity_word(const Format& f) {
  return formats::low_bits(f.exponent_bits) << word_fraction_bits(f);
}
constexpr std::uint64_t largest_finite_word(const Format& f) {
  return ((formats::max_finite_code(f) + 1) << ignored_bits(f)) - 1;
}
constexpr bool is_finite(const Format& f, std::uint64_t word) {
  return (word & (sign_bit(f) - 1)) <= largest_finite_word(f);
}

/// Word of a power-of-two exponent with the given fraction bits; below the normal range the value
/// becomes subnormal (truncated, never zero), above the largest exponent it is clamped.
constexpr std::uint64_t compose(const Format& f, bool negative, int exponent,
                                std::uint64_t fraction) {
  return emulator::inputs::word_with_exponent(emulator::inputs::operand_words(f), negative,
                                              exponent, fraction);
}

/// Value of a finite word as the unit reads it (inputs are made with it; results never are).
inline long double value_of(const Format& f, std::uint64_t word) {
  const formats::Value v = formats::decode(f, word >> ignored_bits(f));
  const long double magnitude = std::ldexp(static_cast<long double>(v.significand), v.exponent);
  return v.negative ? -magnitude : magnitude;
}

/// The word of a value rounded toward zero; saturates at the largest finite one. For inputs only.
inline std::uint64_t word_of(const Format& f, long double value) {
  int exponent = 0;
  const long double fraction = std::frexp(std::fabs(value), &exponent);
  formats::Unrounded x{.kind = value == 0 ? formats::Kind::zero : formats::Kind::finite,
                       .negative = std::signbit(value),
                       .exponent = exponent - 64,
                       .significand = static_cast<std::uint64_t>(std::ldexp(fraction, 64))};
  formats::Overflow overflow;
  overflow.finite = formats::Overflow::Finite::saturate;
  return formats::encode(f, x, formats::Rounding::toward_zero, overflow) << ignored_bits(f);
}

/// For inputs.
using emulator::inputs::Random;

}  // namespace guardbit::gpu
