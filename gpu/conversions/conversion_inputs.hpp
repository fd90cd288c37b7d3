#pragma once

#include <cstdint>

#include "emulator/inputs/input_draw.hpp"
#include "gpu/conversions/conversion_rule.hpp"

/// The inputs of a form of `cvt`, numbered; what the model makes of each; and the digest of the
/// answers. Host and device run the same functions.
namespace guardbit::gpu {

/// The elements of the source; a form that makes one element reads `low`.
struct ConversionInput {
  std::uint64_t low = 0, high = 0;
};

using emulator::inputs::mixed;

/// A random word whose trailing `count` bits (0 to 63) are about a half, one of its neighbours,
/// nothing, everything or random: what decides a rounding.
constexpr std::uint64_t with_tail(std::uint64_t random, int count, unsigned pattern) {
  if (count == 0) return random;
  const std::uint64_t mask = formats::low_bits(count);
  const std::uint64_t half = std::uint64_t{1} << (count - 1);
  const std::uint64_t head = random & ~mask;
  switch (pattern % 8) {
    case 0: return head;
    case 1: return head | half;
    case 2: return head | ((half + 1) & mask);
    case 3: return head | (half - 1);
    case 4: return head | mask;
    case 5: return head | 1;
    default: return random;
  }
}

/// Codes of FP64, too many to be tried all: half of the exponents are those of FP16 and 64-bit
/// integers, three eighths those of FP32, the rest any.
constexpr std::uint64_t fp64_sample(std::uint64_t index) {
  const std::uint64_t choice = mixed(index);
  const std::uint64_t random = mixed(~choice);
  const auto range = static_cast<unsigned>(choice % 8);
  const std::uint64_t pick = (choice >> 8) & 0xFFFF;
  const std::uint64_t biased = range < 4   ? 1023 - 30 + pick % 98
                               : range < 7 ? 1023 - 160 + pick % 292
                                           : pick % 2048;
  const std::uint64_t fraction = with_tail(random, static_cast<int>((choice >> 24) % 53),
                                           static_cast<unsigned>((choice >> 32) % 8)) &
                                 formats::low_bits(52);
  return (choice & (std::uint64_t{1} << 63)) | biased << 52 | fraction;
}

/// 64-bit integers of every length and either sign.
constexpr std::uint64_t int64_sample(std::uint64_t index) {
  const std::uint64_t choice = mixed(index);
  const int length = 1 + static_cast<int>(choice % 64);
  const std::uint64_t top = std::uint64_t{1} << (length - 1);
  const std::uint64_t random = (mixed(~choice) & (top - 1)) | top;
  const auto count = static_cast<int>((choice >> 24) % static_cast<unsigned>(length));
  const std::uint64_t magnitude =
      with_tail(random, count, static_cast<unsigned>((choice >> 32) % 8));
  return (choice >> 63) != 0 ? ~magnitude + 1 : magnitude;
}

/// Binary logarithm of the number of inputs: every value of the source register of up to 32 bits
/// (of an 8-bit integer too, whose register has 16), every pair of 8-bit elements, every value of
/// wider elements in both positions, 2^24 samples of 64-bit codes.
constexpr int input_bits(const ConversionRule& rule) {
  const int width = formats::container_bits(rule.source);
  if (width == 64) return 24;
  return width == 8 ? 16 : width;
}

constexpr bool is_exhaustive(const ConversionRule& rule) {
  return formats::container_bits(rule.source) < 64;
}

/// The input of that number. The upper of two 16- or 32-bit elements is a bijection of the lower
/// one that leaves none in its place: a * x + c = x has no solution modulo a power of two when a
/// and c are odd.
constexpr ConversionInput conversion_input(const ConversionRule& rule, std::uint64_t index) {
  const int width = formats::container_bits(rule.source);
  if (width == 64)
    return {formats::is_integer(rule.source) ? int64_sample(index) : fp64_sample(index), 0};
  if (rule.elements == 1) return {index, 0};
  if (width == 8) return {index & 0xFF, index >> 8};
  return {index, (index * 0x9E3779B1U + 0x7F4A7C15U) & formats::low_bits(width)};
}

/// A code as its register holds it: 8-bit integers are extended to 16 bits, TF32 sits at the top.
constexpr std::uint64_t element_image(const formats::Format& f, std::uint64_t code) {
  const bool extend = f.has_sign && formats::is_integer(f) && formats::bits(f) == 8;
  if (extend && (code & 0x80) != 0) return code | 0xFF00;
  return code << formats::container_shift(f);
}

/// The destination register by the model; of two elements the first source makes the upper one
/// (PTX ISA cvt).
constexpr std::uint64_t convert_by_model(const ConversionRule& rule, const ConversionInput& input) {
  const std::uint64_t low = element_image(rule.destination, convert_element(rule, input.low));
  if (rule.elements == 1) return low;
  return low | convert_element(rule, input.high) << formats::container_bits(rule.destination);
}

/// The share of one input in a digest, which is the sum of all modulo 2^64, in any order.
constexpr std::uint64_t digest_share(std::uint64_t index, std::uint64_t output) {
  return mixed(mixed(index + 0x9E3779B97F4A7C15U) ^ output);
}

/// A digest is kept for each residue of the input's number modulo this, so that a part of it can
/// be checked alone.
inline constexpr std::uint32_t digest_slices = 16384;

}  // namespace guardbit::gpu
