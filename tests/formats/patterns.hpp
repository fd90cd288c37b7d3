#pragma once

#include <array>
#include <cstdint>
#include <random>
#include <vector>

#include "formats/format.hpp"

/// Operands where rounding and special cases are decided: exponent classes crossed with fractions.
namespace guardbit::formats {

/// Fractions with few runs of ones and zeros: ends, neighbours of ends, halves, alternating bits.
inline std::vector<std::uint64_t> fraction_patterns(const Format& f) {
  const std::uint64_t all = fraction_mask(f);
  const int bits = f.fraction_bits;
  return {0,
          1,
          2,
          all,
          all - 1,
          std::uint64_t{1} << (bits - 1),
          (std::uint64_t{1} << (bits - 1)) - 1,
          (std::uint64_t{1} << (bits - 1)) + 1,
          low_bits(bits / 2),
          all & ~low_bits(bits / 2),
          0x5555555555555555 & all,
          std::uint64_t{1} << (bits / 2)};
}

/// Biased exponents: both ends, 1.0 and its neighbours, one and two precisions away from it.
inline std::vector<std::uint64_t> exponent_patterns(const Format& f) {
  const std::uint64_t largest = low_bits(f.exponent_bits);
  const auto at = [&](int exponent) { return static_cast<std::uint64_t>(exponent + f.bias); };
  const int p = f.fraction_bits + 1;
  const int far = 2 * p < f.bias ? 2 * p : f.bias - 1;
  const int near = p < f.bias ? p : f.bias / 2;
  return {0,         1,        2,       largest,         largest - 1,   at(0),
          at(-1),    at(1),    at(2),   at(near),        at(near - 1),  at(near + 1),
          at(-near), at(-far), at(far), at(-f.bias / 2), at(f.bias / 2)};
}

/// Codes of floating formats of at least 10 bits, both signs.
inline std::vector<std::uint64_t> crossed_patterns(const Format& f) {
  std::vector<std::uint64_t> codes;
  for (const std::uint64_t exponent : exponent_patterns(f)) {
    for (const std::uint64_t fraction : fraction_patterns(f)) {
      codes.push_back(exponent << f.fraction_bits | fraction);
      codes.push_back(sign_mask(f) | codes.back());
    }
  }
  return codes;
}

/// Zeros, ones, the ends of the subnormal and normal ranges, infinities and a NaN where there are.
inline std::vector<std::uint64_t> special_codes(const Format& f) {
  const std::uint64_t one = static_cast<std::uint64_t>(f.bias) << f.fraction_bits;
  std::vector<std::uint64_t> codes;
  for (const std::uint64_t code : {std::uint64_t{0}, std::uint64_t{1}, min_normal_code(f), one,
                                   max_finite_code(f), infinity_code(f), quiet_nan_code(f)}) {
    codes.push_back(code);
    codes.push_back(code | sign_mask(f));
  }
  return codes;
}

/// A random code: mostly uniform, often with a fraction of few ones, at times near `other` in
/// exponent, so that sums cancel and products of sums meet.
inline std::uint64_t random_code(const Format& f, std::uint64_t other, std::mt19937_64& generator) {
  const std::uint64_t draw = generator();
  std::uint64_t code = generator() & code_mask(f);
  if (is_integer(f))
    return draw % 2 != 0 ? code : code >> (draw >> 8) % static_cast<unsigned>(bits(f));
  if ((draw & 3) == 0) {
    const int cut = static_cast<int>((draw >> 8) % static_cast<unsigned>(f.fraction_bits + 1));
    code &= ~low_bits(cut);
    if ((draw & 4) != 0) code |= (draw & 8) != 0 ? low_bits(cut) : low_bits(cut) & 1;
  }
  if ((draw & 0x30) == 0) {
    // The exponent of `other` moved by at most a precision and a half.
    const auto reach = static_cast<std::uint64_t>(f.fraction_bits * 3 / 2 + 1);
    const std::uint64_t field = (other & magnitude_mask(f)) >> f.fraction_bits;
    const std::uint64_t moved = field + (draw >> 16) % (2 * reach + 1) - reach;
    const std::uint64_t exponent =
        (moved << f.fraction_bits) & magnitude_mask(f) & ~fraction_mask(f);
    code = (code & ~(magnitude_mask(f) & ~fraction_mask(f))) | exponent;
  }
  return code;
}

}  // namespace guardbit::formats
