#include "formats/kernels/scale.hpp"

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <cstring>

#include "formats/rounding.hpp"

namespace guardbit::formats::kernels {

namespace {

constexpr std::uint32_t sign_bit = 0x80000000;
constexpr std::uint32_t infinity = 0x7F800000;
constexpr int fraction_bits = 23;

template <class Function>
void for_words(std::byte* words, std::size_t count, const Function& function) {
  for (std::size_t i = 0; i < count; ++i) {
    std::uint32_t word = 0;
    std::memcpy(&word, words + i * sizeof word, sizeof word);
    word = function(word);
    std::memcpy(words + i * sizeof word, &word, sizeof word);
  }
}

/// A factor with its top bit set, standing for factor * 2^(exponent - 64).
struct Factor {
  std::uint64_t significand = 0;
  int exponent = 0;
};

/// The FP32 code of a finite magnitude times the factor; infinity past the largest number.
template <Rounding rounding>
std::uint32_t rounded_product(std::uint32_t magnitude, const Factor& factor) {
  if (magnitude == 0) return 0;
  const auto field = static_cast<int>(magnitude >> fraction_bits);
  const std::uint32_t fraction = magnitude & ((1U << fraction_bits) - 1);
  const std::uint64_t significand = field != 0 ? fraction | 1U << fraction_bits : fraction;
  const uint128 product = uint128{significand} * factor.significand;
  // Exponent fields of the product's unit and of the result's, which no number has below 1. At
  // least 40 bits are lost: the factor has 64, and FP32 keeps 24 or fewer.
  const int unit = std::max(field, 1) + factor.exponent - 64;
  const int result = std::max(unit + leading_bit(product) - fraction_bits, 1);
  const int shift = std::min(result - unit, 127);  // past 88 bits nothing is left in any case
  const auto kept = static_cast<std::uint32_t>(
      shift_right_and_round(product, shift, false, false, rounding).significand);
  if (result > 254) return infinity;
  return std::min((static_cast<std::uint32_t>(result - 1) << fraction_bits) + kept, infinity);
}

template <Rounding rounding>
void multiply(const Factor& factor, std::byte* words, std::size_t count) {
  for_words(words, count, [factor](std::uint32_t word) {
    const std::uint32_t magnitude = word & ~sign_bit;
    if (magnitude >= infinity) return word;
    return (word & sign_bit) | rounded_product<rounding>(magnitude, factor);
  });
}

std::uint64_t normalised_significand(const Value& scale) {
  assert(scale.kind == Kind::finite);
  return scale.significand << (63 - leading_bit(scale.significand));
}

}  // namespace

void negate(std::byte* words, std::size_t count) {
  for_words(words, count, [](std::uint32_t word) {
    return (word & ~sign_bit) > infinity ? word : word ^ sign_bit;
  });
}

void multiply_to_odd(const Value& scale, std::byte* words, std::size_t count) {
  multiply<Rounding::to_odd>({normalised_significand(scale), 0}, words, count);
}

void multiply_to_nearest(const Value& scale, std::byte* words, std::size_t count) {
  constexpr int far = 1000;  // every product is zero or infinity long before
  const int exponent = scale.exponent + leading_bit(scale.significand) + 1;
  multiply<Rounding::nearest_even>({normalised_significand(scale), std::clamp(exponent, -far, far)},
                                   words, count);
}

bool keeps_odd_products(const Format& to, int scale_exponent) {
  if (is_integer(to)) return true;
  const int unit = min_exponent(to) - to.fraction_bits - scale_exponent;
  return to.fraction_bits <= 21 && unit >= -147;
}

}  // namespace guardbit::formats::kernels
