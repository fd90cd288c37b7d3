#pragma once

#include <array>
#include <cstdint>

#include "emulator/inputs/input_draw.hpp"
#include "formats/arithmetic.hpp"
#include "formats/codec.hpp"

// Operands of instructions that round once, in any format, of which there are too many to try all.
// Hosts and devices draw the same.
namespace guardbit::emulator {

/// Codes that instructions treat apart: zeros, ends of the ranges, small numbers, infinity, NaNs,
/// the one among them that `.oob` looks for.
inline constexpr std::uint64_t special_code_count = 34;
constexpr std::uint64_t special_code(const formats::Format& f, std::uint64_t random) {
  const std::uint64_t one = static_cast<std::uint64_t>(f.bias) << f.fraction_bits,
                      step = std::uint64_t{1} << f.fraction_bits,
                      infinity = formats::infinity_code(f);
  const std::array<std::uint64_t, special_code_count / 2> magnitudes = {
      0,
      1,
      step - 1,
      step,
      step + 1,
      one - step,
      one - 1,
      one,
      one + 1,
      one + step,
      one + step + step / 2,
      infinity - 1,
      infinity,
      infinity + step / 2,
      infinity + 1,
      formats::magnitude_mask(f) - 8,
      formats::magnitude_mask(f)};
  return magnitudes[random % magnitudes.size()] |
         (random / magnitudes.size() % 2 != 0 ? formats::sign_mask(f) : 0);
}

/// A code whose unbiased exponent lies within `width` of `exponent`, or at the end of the range.
constexpr std::uint64_t code_near(const formats::Format& f, std::uint64_t random, int exponent,
                                  int width) {
  const int shift = static_cast<int>(random >> 56) % (2 * width + 1) - width;
  const int wanted = exponent + shift + f.bias;
  const int last = (1 << f.exponent_bits) - 2;
  const int biased = wanted < 0 ? 0 : wanted > last ? last : wanted;
  const std::uint64_t bits = random & (formats::fraction_mask(f) | formats::sign_mask(f));
  return bits | static_cast<std::uint64_t>(biased) << f.fraction_bits;
}

/// The operands of that number. Eight kinds take turns: any codes; numbers about 1; special codes;
/// a neighbour of x or -x as y; few fraction bits, whose results tie; z about -x y; products, sums
/// and quotients about the smallest normal number; the same about the largest one.
constexpr std::array<std::uint64_t, 4> drawn_operands(const formats::Format& f,
                                                      std::uint64_t number) {
  const std::uint64_t a = inputs::mixed(number + 0x9E3779B97F4A7C15), b = inputs::mixed(~a),
                      c = inputs::mixed(b + number);
  const std::uint64_t mask = formats::code_mask(f), sign = formats::sign_mask(f);
  switch (number % 8) {
    case 0: return {a & mask, b & mask, c & mask};
    case 1: return {code_near(f, a, 0, 6), code_near(f, b, 0, 6), code_near(f, c, 0, 12)};
    case 2: {
      const std::uint64_t other = (c & 64) != 0 ? c >> 7 & mask : special_code(f, c);
      return {special_code(f, a), (b & 64) != 0 ? b >> 7 & mask : special_code(f, b), other};
    }
    case 3: {
      const std::uint64_t near = (a + (b >> 8) % 9 - 4) ^ (b & sign);
      return {a & mask, near & mask, special_code(f, c)};
    }
    case 4: {
      // The upper half of the fraction bits, some of them without the last.
      const int kept = (f.fraction_bits + 1) / 2 - static_cast<int>(c >> 40) % 2;
      const std::uint64_t clear = ~(formats::fraction_mask(f) >> kept);
      return {code_near(f, a, 0, 2) & clear, code_near(f, b, 0, 2) & clear,
              code_near(f, c, -f.fraction_bits / 2, f.fraction_bits) & clear};
    }
    case 5: {
      const std::uint64_t x = code_near(f, a, 0, f.bias / 2), y = code_near(f, b, 0, f.bias / 2);
      const formats::Unrounded product =
          formats::multiply(formats::decode(f, x), formats::decode(f, y));
      const std::uint64_t opposite =
          formats::encode(f, product, formats::Rounding::toward_zero) ^ sign;
      return {x, y, (opposite + c % 9 - 4) & mask};
    }
    case 6: {
      const int low = formats::min_exponent(f), part = static_cast<int>(b >> 32) % (-low);
      return {code_near(f, a, low + part, 2), code_near(f, b, (c & 1) != 0 ? -part : part, 2),
              code_near(f, c, low, 3)};
    }
    default: {
      const int high = f.bias, part = static_cast<int>(b >> 32) % high;
      return {code_near(f, a, high - part, 2), code_near(f, b, (c & 1) != 0 ? part : -part, 2),
              code_near(f, c, high, 2)};
    }
  }
}

}  // namespace guardbit::emulator
