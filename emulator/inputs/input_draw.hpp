#pragma once

// Random numbers for operands, and words made from them; all of it compiles for a device. A word is
// a code as registers and containers hold it: TF32 in the upper 19 bits of 32, everything else as
// it is.

#include <bit>
#include <cstdint>

#include "formats/format.hpp"

namespace guardbit::emulator::inputs {

using formats::Format;

/// The finaliser of splitmix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number
/// generators", OOPSLA 2014).
constexpr std::uint64_t mixed(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
  return z ^ (z >> 31);
}

/// A sequence of random numbers, for hosts that draw operands one after another: number n is a hash
/// of the key and n. The same on every machine.
class Random {
 public:
  explicit constexpr Random(std::uint64_t key) : state_(key) {}

  constexpr std::uint64_t bits() { return mixed(state_ += 0x9E3779B97F4A7C15U); }
  constexpr std::uint64_t below(std::uint64_t bound) { return bits() % bound; }
  /// Uniform in [low, high].
  constexpr int between(int low, int high) {
    return low + static_cast<int>(below(static_cast<std::uint64_t>(std::int64_t{high} - low + 1)));
  }
  constexpr bool one_in(int n) { return below(static_cast<std::uint64_t>(n)) == 0; }
  constexpr bool chance(int percent) { return between(0, 99) < percent; }

 private:
  std::uint64_t state_;
};

/// What a number is drawn for.
enum class Place : std::uint8_t {
  a,
  b,
  c,
  position,
  execution,
  row,
  column,
  group,
  a_scale,
  b_scale
};

/// The random bits of one place: a function of seed, family, execution and place, so that a device
/// and a host can make elements in any order.
class Draw {
 public:
  /// `key` stands for seed and family, `t` is the execution (below 2^40), `index` below 2^20.
  constexpr Draw(std::uint64_t key, std::int64_t t, Place place, int index)
      : state_(key + 0x9E3779B97F4A7C15U * ((static_cast<std::uint64_t>(t) << 24) |
                                            (static_cast<std::uint64_t>(place) << 20) |
                                            static_cast<std::uint64_t>(index))),
        bits_(mixed(state_)) {}

  /// The next `count` bits, at most 32.
  constexpr std::uint64_t take(int count) {
    if (left_ < count) {
      state_ += 0xD1B54A32D192ED03U;
      bits_ = mixed(state_);
      left_ = 64;
    }
    const std::uint64_t taken = bits_ & ((std::uint64_t{1} << count) - 1);
    bits_ >>= count;
    left_ -= count;
    return taken;
  }
  /// Uniform (to 2^-16) in [0, count); `count` at most 2^16.
  constexpr int below(int count) {
    return static_cast<int>((static_cast<std::uint32_t>(take(16)) *
                             static_cast<std::uint64_t>(static_cast<unsigned>(count))) >>
                            16);
  }
  constexpr int between(int low, int high) { return low + below(high - low + 1); }
  constexpr bool coin() { return take(1) != 0; }
  /// True in `count` of 256 draws.
  constexpr bool chance(int count) { return static_cast<int>(take(8)) < count; }
  /// The low `count` bits random, at most 64.
  constexpr std::uint64_t wide(int count) {
    if (count <= 32) return take(count);
    const std::uint64_t low = take(32);
    return low | (take(count - 32) << 32);
  }

 private:
  std::uint64_t state_, bits_;
  int left_ = 64;
};

/// What must be known of an operand's words to make an element.
struct OperandWords {
  /// low bits that the hardware ignores
  int ignored = 0;
  /// below the leading bit, the ignored ones included
  int fraction_bits = 0;
  int bias = 0;
  /// exponent of the smallest subnormal
  int lowest = 0;
  /// exponent of the smallest normal number
  int least_normal = 0;
  /// exponent of the largest finite number
  int highest = 0;
  bool has_infinity = false;
  std::uint64_t mask = 0;
  /// 0 for unsigned integers
  std::uint64_t sign = 0;
  /// 0 for formats without it
  std::uint64_t negative_zero = 0;
  /// all exponent bits: infinity where the format has it
  std::uint64_t infinity = 0;
  /// all magnitude bits, or what is -0 elsewhere: a NaN, or the largest number if there is none
  std::uint64_t nan = 0;
  /// finite, ignored bits set
  std::uint64_t largest = 0;
};

constexpr OperandWords operand_words(const Format& f) {
  OperandWords x;
  x.ignored = formats::container_shift(f);
  x.mask = formats::low_bits(formats::bits(f) + x.ignored);
  x.sign = formats::sign_mask(f) << x.ignored;
  if (formats::is_integer(f)) {
    x.largest = formats::magnitude_mask(f);
    return x;
  }
  x.fraction_bits = f.fraction_bits + x.ignored;
  x.bias = f.bias;
  x.least_normal = formats::min_exponent(f);
  x.lowest = formats::min_exponent(f) - f.fraction_bits;
  x.highest = formats::max_exponent(f);
  x.has_infinity = formats::has_infinity(f);
  x.negative_zero = formats::has_negative_zero(f) ? x.sign : 0;
  x.infinity = formats::low_bits(f.exponent_bits) << x.fraction_bits;
  x.nan = formats::all_ones_nan_code(f) << x.ignored | formats::low_bits(x.ignored);
  x.largest = ((formats::max_finite_code(f) + 1) << x.ignored) - 1;
  return x;
}

constexpr int larger(int x, int y) { return x > y ? x : y; }
constexpr int smaller(int x, int y) { return x < y ? x : y; }
constexpr int clamped(int x, int low, int high) { return larger(low, smaller(x, high)); }

/// A number of that exponent and fraction; subnormal below the normal range (truncated, never
/// zero), the largest exponent above it.
constexpr std::uint64_t word_with_exponent(const OperandWords& f, bool negative, int exponent,
                                           std::uint64_t fraction) {
  const int width = f.fraction_bits;
  const std::uint64_t hidden = std::uint64_t{1} << width;
  fraction &= hidden - 1;
  exponent = smaller(exponent, f.highest);
  std::uint64_t magnitude = 0;
  if (exponent >= f.least_normal) {
    magnitude = (static_cast<std::uint64_t>(exponent + f.bias) << width) | fraction;
  } else {
    const int shift = f.least_normal - exponent;
    magnitude =
        shift > width - f.ignored ? std::uint64_t{1} << f.ignored : (hidden | fraction) >> shift;
  }
  if (magnitude > f.largest) magnitude = f.largest;
  return magnitude | (negative ? f.sign : 0);
}

constexpr bool is_finite(const OperandWords& f, std::uint64_t word) {
  return (word & ~f.sign) <= f.largest && (word != f.sign || f.negative_zero == f.sign);
}

constexpr std::uint64_t signed_zero(const OperandWords& f, Draw& draw) {
  return draw.coin() ? f.negative_zero : 0;
}

constexpr std::uint64_t raw_word(const OperandWords& f, Draw& draw) {
  return (f.mask >> 32) != 0 ? draw.wide(64) : draw.take(32) & f.mask;
}

/// Random bits; the highest exponent bit is cleared if they are not a finite number, all bits if
/// only one NaN is not.
constexpr std::uint64_t finite_word(const OperandWords& f, Draw& draw) {
  const std::uint64_t word = raw_word(f, draw);
  if (is_finite(f, word)) return word;
  return f.nan == f.sign ? 0 : word & ~(f.sign >> 1);
}

/// Fractions that decide roundings: zero, all ones, one bit, or anything.
constexpr std::uint64_t simple_fraction(const OperandWords& f, Draw& draw) {
  const int kind = static_cast<int>(draw.take(3));
  if (kind < 4) return 0;
  if (kind == 4) return (std::uint64_t{1} << f.fraction_bits) - 1;
  if (kind == 5) return std::uint64_t{1} << draw.below(f.fraction_bits);
  return draw.wide(f.fraction_bits);
}

/// The word `units` ulps away; the word itself if that is not a finite number.
constexpr std::uint64_t nudged(const OperandWords& f, std::uint64_t word, int units) {
  const std::uint64_t moved =
      (word + (static_cast<std::uint64_t>(static_cast<std::int64_t>(units)) << f.ignored)) & f.mask;
  return is_finite(f, moved) ? moved : word;
}

/// 2^exponent, for exponents of normal FP64 numbers.
constexpr double power_of_two(int exponent) {
  return std::bit_cast<double>(static_cast<std::uint64_t>(exponent + 1023) << 52);
}

/// The exact value of a finite word. It serves to make inputs, never results.
constexpr double double_of(const OperandWords& f, std::uint64_t word) {
  if (f.fraction_bits == 52) return std::bit_cast<double>(word);
  const std::uint64_t magnitude = (word & ~f.sign) >> f.ignored;
  const int width = f.fraction_bits - f.ignored;
  const auto biased = static_cast<int>(magnitude >> width);
  std::uint64_t significand = magnitude & ((std::uint64_t{1} << width) - 1);
  if (biased != 0) significand |= std::uint64_t{1} << width;
  const int lowest_bit = (biased != 0 ? biased - f.bias : f.least_normal) - width;
  const double value =
      static_cast<double>(static_cast<std::uint32_t>(significand)) * power_of_two(lowest_bit);
  return (word & f.sign) != 0 ? -value : value;
}

/// The word of a value rounded toward zero; the largest finite number if the value is too large.
constexpr std::uint64_t word_of_double(const OperandWords& f, double value) {
  const auto bits = std::bit_cast<std::uint64_t>(value);
  const bool negative = (bits >> 63) != 0;
  const auto biased = static_cast<int>((bits >> 52) & 0x7FF);
  if (biased == 0x7FF) return f.largest | (negative ? f.sign : 0);
  if (f.fraction_bits == 52) return bits;
  if (biased - 1023 < f.lowest) return negative ? f.sign : 0;
  const std::uint64_t fraction = bits & ((std::uint64_t{1} << 52) - 1);
  return word_with_exponent(f, negative, biased - 1023, fraction >> (52 - f.fraction_bits));
}

}  // namespace guardbit::emulator::inputs
