#pragma once

#include <array>
#include <cstdint>

#include "emulator/inputs/input_draw.hpp"

// Arguments for functions of two numbers or more, of which there are too many to try all. Hosts and
// devices draw the same.
namespace guardbit::emulator {

struct ArgumentPair {
  std::uint32_t x = 0, y = 0;
};

/// Codes of FP32 that functions treat apart: zeros, ends of the ranges, small integers and halves.
inline constexpr int special_argument_count = 32;
constexpr std::uint32_t special_argument(std::uint64_t random) {
  constexpr std::array<std::uint32_t, special_argument_count / 2> positive = {
      0x00000000, 0x00000001, 0x007fffff, 0x00800000, 0x33800000, 0x3effffff,
      0x3f000000, 0x3f7fffff, 0x3f800000, 0x3f800001, 0x40000000, 0x40400000,
      0x4b800000, 0x7f7fffff, 0x7f800000, 0x7fc00000};
  return positive[random % positive.size()] |
         static_cast<std::uint32_t>(random / positive.size() % 2) << 31;
}

/// A code whose unbiased exponent lies in [low, low + 2^n).
constexpr std::uint32_t argument_of_exponents(std::uint64_t random, int low, int n) {
  const auto code = static_cast<std::uint32_t>(random);
  const auto exponent = static_cast<std::uint32_t>(random >> 32) & ((1U << n) - 1);
  return (code & 0x807fffff) | (exponent + static_cast<std::uint32_t>(low + 127)) << 23;
}

/// The pair of that number. Eight kinds take turns: any codes; numbers about 1; neighbours;
/// special numbers; integers and halves as y; x near 1 and a large y; a huge x and a small y; ends
/// of the range.
constexpr ArgumentPair argument_pair(std::uint64_t number) {
  const std::uint64_t a = inputs::mixed(number + 0x9E3779B97F4A7C15), b = inputs::mixed(~a);
  const auto any_x = static_cast<std::uint32_t>(a), any_y = static_cast<std::uint32_t>(b);
  switch (number % 8) {
    case 0: return {any_x, any_y};
    case 1: return {argument_of_exponents(a, -8, 4), argument_of_exponents(b, -8, 4)};
    case 2: {
      const std::uint32_t sign = any_y & 0x80000000;
      return {any_x, (any_x ^ sign) + (any_y >> 4) % 9 - 4};
    }
    case 3: return {special_argument(a >> 3), (b & 7) < 4 ? special_argument(b >> 3) : any_y};
    case 4: {
      // Multiples of a half from 0 to 64 in FP32: the leading one, then what is below it.
      const std::uint32_t twice = any_y >> 8 & 127;
      std::uint32_t exponent = 0;
      while (twice >> exponent > 1) ++exponent;
      const std::uint32_t code =
          twice == 0 ? 0 : (exponent + 126) << 23 | (twice << (23 - exponent) & 0x7fffff);
      return {argument_of_exponents(a, -16, 5), (any_y & 0x80000000) | code};
    }
    case 5: return {0x3f800000 + (any_x >> 2 & 0xffff) - 0x8000, argument_of_exponents(b, 4, 5)};
    case 6: return {argument_of_exponents(a, 64, 6), argument_of_exponents(b, -126, 6)};
    default:
      return {argument_of_exponents(a, (a >> 40 & 1) != 0 ? 120 : -127, 3),
              argument_of_exponents(b, (b >> 40 & 1) != 0 ? 120 : -127, 3)};
  }
}

/// For functions of three or four numbers, a pair and two more.
struct ArgumentTuple {
  std::uint32_t x = 0, y = 0, z = 0, w = 0;
};

/// -x y cut to 24 bits, or any code where that is outside the normal range: sums with the product
/// cancel.
constexpr std::uint32_t opposite_of_product(std::uint32_t x, std::uint32_t y) {
  const auto significand = [](std::uint32_t code) {
    return std::uint64_t{(code & 0x7fffff) | 0x800000};
  };
  const std::uint64_t product = significand(x) * significand(y);  // 47 or 48 bits
  const std::uint32_t carry = static_cast<std::uint32_t>(product >> 47);
  const std::uint32_t exponent = (x >> 23 & 255) + (y >> 23 & 255) - 127 + carry;
  if (exponent - 1 > 253) return x ^ y;
  const auto fraction = static_cast<std::uint32_t>(product >> (23 + carry)) & 0x7fffff;
  return (~(x ^ y) & 0x80000000) | exponent << 23 | fraction;
}

/// The tuple of that number. x and y are its pair; eight kinds of z and w take turns: any codes;
/// numbers about 1; special numbers; numbers of x's and y's exponents, larger or smaller by up to
/// 2; about -x y; far smaller than x y; ends of the range; zeros and any code.
constexpr ArgumentTuple argument_tuple(std::uint64_t number) {
  const ArgumentPair pair = argument_pair(number);
  const std::uint64_t c = inputs::mixed(number + 0xD1B54A32D192ED03), d = inputs::mixed(~c);
  const auto any_z = static_cast<std::uint32_t>(c), any_w = static_cast<std::uint32_t>(d);
  const auto tuple = [&](std::uint32_t z, std::uint32_t w) {
    return ArgumentTuple{pair.x, pair.y, z, w};
  };
  const auto like = [](std::uint32_t code, std::uint64_t random) {
    const auto shift = static_cast<std::uint32_t>(random >> 40) % 5 - 2;
    const auto other = static_cast<std::uint32_t>(random);
    return ((code & 0x7f800000) + (shift << 23)) ^ (other & 0x807fffff);
  };
  const std::uint32_t opposite = opposite_of_product(pair.x, pair.y);
  switch (number / 8 % 8) {
    case 0: return tuple(any_z, any_w);
    case 1: return tuple(argument_of_exponents(c, -8, 4), argument_of_exponents(d, -8, 4));
    case 2: return tuple(special_argument(c >> 3), special_argument(d >> 3));
    case 3: return tuple(like(pair.x, c), like(pair.y, d));
    case 4: return tuple(opposite + any_z % 9 - 4, pair.x + any_w % 9 - 4);
    case 5:
      return tuple((opposite & 0x7fffffff) > 0x1c000000
                       ? (opposite ^ (any_z & 0x80000000)) - ((any_z % 56) << 23)
                       : any_z,
                   any_w);
    case 6:
      return tuple(argument_of_exponents(c, (c >> 40 & 1) != 0 ? 120 : -127, 3),
                   argument_of_exponents(d, (d >> 40 & 1) != 0 ? 120 : -127, 3));
    default: return tuple(any_z & 0x80000000, (any_w & 1) != 0 ? any_w : any_w & 0x80000000);
  }
}

/// An integer for functions of a number and an integer: of most codes one from -512 to 511, of some
/// the code itself.
constexpr std::uint32_t integer_argument(std::uint32_t code) {
  return code % 16 == 0 ? code : (code >> 4 & 1023) - 512;
}
/// A small one from -2 to 61, for functions that take as many steps.
constexpr std::uint32_t small_integer_argument(std::uint32_t code) { return (code >> 4 & 63) - 2; }

}  // namespace guardbit::emulator
