#include <algorithm>
#include <array>
#include <bit>
#include <random>

#include "formats/codec.hpp"
#include "formats/conversion/block_quantisation.hpp"
#include "formats/conversion/kernels/conversion_plan.hpp"
#include "formats/format_catalogue.hpp"
#include "formats/random.hpp"
#include "formats/rounding.hpp"
#include "tests/catch.hpp"

/// What the array kernels (formats/conversion/kernels) lean on.
namespace guardbit::formats {
namespace {

constexpr std::array deterministic = {Rounding::nearest_even, Rounding::nearest_away,
                                      Rounding::toward_zero,  Rounding::upward,
                                      Rounding::downward,     Rounding::to_odd};

std::uint32_t addend(Rounding rounding, std::uint32_t significand, int shift, bool negative) {
  const std::uint32_t odd = significand >> shift & 1;
  const std::uint32_t ones = (1U << shift) - 1;
  switch (rounding) {
    case Rounding::nearest_even: return (1U << shift >> 1) - 1 + odd;
    case Rounding::nearest_away: return 1U << shift >> 1;
    case Rounding::upward: return negative ? 0 : ones;
    case Rounding::downward: return negative ? ones : 0;
    case Rounding::to_odd: return odd != 0 ? 0 : ones;
    case Rounding::toward_zero:
    case Rounding::stochastic: break;
  }
  return 0;
}

}  // namespace

TEST_CASE("an addend before the shift is the rounding, for every significand of 12 bits") {
  for (const Rounding rounding : deterministic) {
    bool holds = true;
    for (int shift = 1; shift <= 14; ++shift) {
      for (std::uint32_t significand = 0; significand < 4096; ++significand) {
        for (const bool negative : {false, true}) {
          const std::uint32_t sum = significand + addend(rounding, significand, shift, negative);
          const auto rounded =
              shift_right_and_round(std::uint64_t{significand}, shift, false, negative, rounding);
          holds = holds && sum >> shift == rounded.significand;
        }
      }
    }
    CAPTURE(static_cast<int>(rounding));
    CHECK(holds);
  }
}

TEST_CASE("random bits carry out of 32 as random_carry says") {
  std::mt19937 random(1);
  bool holds = true;
  for (int shift = 0; shift <= 70; ++shift) {
    for (int count = 1; count <= 32; ++count) {
      for (int i = 0; i < 400; ++i) {
        // Few or many ones, so that sums come close to the carry.
        std::uint32_t significand = static_cast<std::uint32_t>(random()) >> 8;
        if (i % 3 == 0) significand = 0xFFFFFF >> (i % 24);
        if (i % 5 == 0) significand = ~((1U << (i % 24)) - 1) & 0xFFFFFF;
        const auto word = static_cast<std::uint32_t>(i % 4 == 0 ? ~0U << (i % 32) : random());
        const std::uint32_t bits = word & (~0U << (32 - count));
        const auto left = [](std::uint32_t x, int n) { return n >= 0 && n < 32 ? x << n : 0; };
        const auto right = [](std::uint32_t x, int n) { return n >= 0 && n < 32 ? x >> n : 0; };
        const std::uint32_t lost = left(significand, 32 - shift) | right(significand, shift - 32);
        const bool carries = lost + bits < bits;
        holds = holds && carries == random_carry(significand, shift,
                                                 {std::uint64_t{word} >> (32 - count), count});
      }
    }
  }
  CHECK(holds);
}

TEST_CASE("scaling by a power of two is a conversion to the format with a larger bias") {
  for (const Format& f : {e4m3, e5m2, e4m3fnuz, e2m1, ue4m3, floating(5, 4)}) {
    for (int k = -12; k <= 12; ++k) {
      Format biased = f;
      biased.bias += k;
      bool holds = true;
      for (std::uint64_t code = 0; code < 0x10000; code += 3) {
        Value x = decode(fp16, code);
        Value scaled = x;
        scaled.exponent += x.kind == Kind::finite ? k : 0;
        const Rounding rounding = deterministic[code % deterministic.size()];
        const RandomBits bits = random_bits(1, code, 9);
        holds = holds && encode(f, scaled, rounding) == encode(biased, x, rounding) &&
                encode(f, scaled, Rounding::stochastic, overflow_saturate, bits) ==
                    encode(biased, x, Rounding::stochastic, overflow_saturate, bits);
      }
      CAPTURE(f.exponent_bits, f.fraction_bits, k);
      CHECK(holds);
    }
  }
}

TEST_CASE("a number rounded to odd rounds as the exact one where two bits are to spare") {
  bool holds = true;
  for (std::uint64_t exact = 0; exact < 1 << 14; ++exact) {
    for (int lost = 0; lost <= 8; ++lost) {
      const std::uint64_t odd =
          shift_right_and_round(exact, lost, false, false, Rounding::to_odd).significand;
      for (int rest = 2; rest <= 6; ++rest) {
        for (const Rounding rounding : deterministic) {
          for (const bool negative : {false, true}) {
            holds =
                holds && shift_right_and_round(odd, rest, false, negative, rounding).significand ==
                             shift_right_and_round(exact, lost + rest, false, negative, rounding)
                                 .significand;
          }
        }
      }
    }
  }
  CHECK(holds);
  // With one bit to spare it does not: 1.01 and a little, to odd 1.1, is no tie.
  CHECK(
      shift_right_and_round(std::uint64_t{0b1001}, 2, false, false, Rounding::to_odd).significand ==
      0b11);
  CHECK(shift_right_and_round(std::uint64_t{0b11}, 1, false, false, Rounding::nearest_even)
            .significand !=
        shift_right_and_round(std::uint64_t{0b1001}, 3, false, false, Rounding::nearest_even)
            .significand);
}

TEST_CASE("no 24-bit significand that is shifted by 25 rounds to anything but zero") {
  bool holds = true;
  for (std::uint64_t significand = 0; significand < 1 << 24; ++significand) {
    holds =
        holds &&
        shift_right_and_round(significand, 25, false, false, Rounding::nearest_even).significand ==
            0;
  }
  CHECK(holds);
  CHECK(shift_right_and_round(std::uint64_t{0xFFFFFF}, 24, false, false, Rounding::nearest_even)
            .significand == 1);
  // Random bits see nothing at all from 32 + 24 on.
  CHECK_FALSE(random_carry(0xFFFFFF, 56, {0xFFFFFFFF, 32}));
  CHECK(random_carry(0xFFFFFF, 55, {0xFFFFFFFF, 32}));
}

TEST_CASE("integers below 2^23 are FP32 numbers, whose fields are those of the subnormals") {
  bool holds = true;
  for (std::uint32_t x = 1; x < 1U << 23; ++x) {
    const auto word = std::bit_cast<std::uint32_t>(static_cast<float>(x));
    const int field = static_cast<int>(word >> 23) - 149;
    const std::uint64_t significand = (word & 0x7FFFFF) | 0x800000;
    // The subnormal x * 2^-149 is significand * 2^(field - 150).
    holds = holds && field <= 0 && field + kernels::raised_field > 0 &&
            significand == std::uint64_t{x} << (1 - field);
  }
  CHECK(holds);
}

TEST_CASE("a random carry in a block is the upper word of a sum, in small numbers of all kinds") {
  // Words of 8 bits for 32: units of 4 bits, significands of 5, magnitudes of E2M1.
  constexpr int width = 8;
  constexpr std::array<std::uint64_t, 8> magnitudes = {0, 1, 2, 3, 4, 6, 8, 12};
  std::size_t wrong = 0;
  std::size_t compared = 0;
  for (std::uint64_t unit = 1; unit < 16; ++unit) {
    for (int shift = -9; shift <= 14; ++shift) {  // a significand counts in 2^(shift - width) steps
      for (std::uint64_t x = 0; x < 32; ++x) {
        const Unrounded quotient = x == 0 ? exactly(zero_value(false))
                                          : divide({Kind::finite, false, shift - width, x},
                                                   {Kind::finite, false, 0, unit});
        for (std::size_t k = 0; k < 7; ++k) {
          // unit * M_k <= x * 2^(shift - width) < unit * M_(k+1)
          const auto reaches = [&](std::uint64_t magnitude) {
            return x << (shift + 16) >= (unit * magnitude) << (width + 16);
          };
          if (!reaches(magnitudes[k]) || reaches(magnitudes[k + 1])) continue;
          const std::uint64_t shifted = shift >= 0 ? x << shift : x >> -shift;
          const std::uint64_t next = unit * magnitudes[k + 1];
          const std::uint64_t weight = next - unit * magnitudes[k];
          for (int count = 1; count <= width; ++count) {
            for (std::uint64_t random = 0; random < std::uint64_t{1} << count; ++random) {
              const std::uint64_t sum = shifted + weight * (random << (width - count));
              Unrounded steps = quotient;  // E2M1 counts in halves
              steps.exponent -= 1;
              const std::uint64_t code =
                  encode(e2m1, steps, Rounding::stochastic, overflow_saturate, {random, count});
              const std::uint64_t carried = sum >> width >= next ? k + 1 : k;
              wrong += carried != code || sum >> (2 * width) != 0 ? 1 : 0;
              ++compared;
            }
          }
        }
      }
    }
  }
  CHECK(wrong == 0);
  CHECK(compared > 1000000);
}

TEST_CASE("twice the largest magnitude has the next power of two as its scale, within bounds") {
  for (const BlockFormatEntry& entry : block_format_catalogue) {
    if (entry.format.scale != e8m0) continue;
    for (const ScaleRule& rule : {scale_of_exponents, scale_without_overflow, scale_nearest}) {
      BlockQuantisationOptions options;
      options.rule = rule;
      const auto scale = [&](std::uint32_t word) {
        return block_scale(entry.format, decode(fp32, word), options);
      };
      bool holds = true;
      for (std::uint32_t word = 0x00800000; word < 0x7F000000; word += 0x003FFF) {
        const std::uint64_t one = scale(word);
        const std::uint64_t two = scale(word + 0x800000);
        holds =
            holds && (two == std::min(one + 1, max_finite_code(e8m0)) || (two == 0 && one == 0));
      }
      CAPTURE(entry.name);
      CHECK(holds);
    }
  }
}

}  // namespace guardbit::formats
