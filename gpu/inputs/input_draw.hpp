#pragma once

// The random numbers behind an element of the inputs, and words made from them. Every number is a
// function of seed, family, execution and place, so that elements can be made in any order, on the
// device or on the host.

#include <bit>
#include <cstdint>

#include "gpu/inputs/input_shape.hpp"

namespace guardbit::gpu {

/// The finaliser of splitmix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number
/// generators", OOPSLA 2014).
constexpr std::uint64_t mixed(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
  return z ^ (z >> 31);
}

/// What a number is drawn for; each has its own places.
enum class Place : std::uint8_t { a, b, c, position, tile, row, column, unit, a_scale, b_scale };

/// Bits for one place, as many as asked for.
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

constexpr int larger(int x, int y) { return x > y ? x : y; }
constexpr int smaller(int x, int y) { return x < y ? x : y; }
constexpr int clamped(int x, int low, int high) { return larger(low, smaller(x, high)); }

/// As `compose`: a number of that exponent and fraction; subnormal below the normal range
/// (truncated, never zero), the largest exponent above it.
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
  return (word & ~f.sign) <= f.largest;
}

constexpr std::uint64_t signed_zero(const OperandWords& f, Draw& draw) {
  return draw.coin() ? f.sign : 0;
}

constexpr std::uint64_t raw_word(const OperandWords& f, Draw& draw) {
  return (f.mask >> 32) != 0 ? draw.wide(64) : draw.take(32) & f.mask;
}

/// Any bits, but the highest exponent bit cleared where they are no finite number.
constexpr std::uint64_t finite_word(const OperandWords& f, Draw& draw) {
  const std::uint64_t word = raw_word(f, draw);
  return is_finite(f, word) ? word : word & ~(f.sign >> 1);
}

/// Fractions that decide roundings: zero, all ones, one bit, or anything.
constexpr std::uint64_t simple_fraction(const OperandWords& f, Draw& draw) {
  const int kind = static_cast<int>(draw.take(3));
  if (kind < 4) return 0;
  if (kind == 4) return (std::uint64_t{1} << f.fraction_bits) - 1;
  if (kind == 5) return std::uint64_t{1} << draw.below(f.fraction_bits);
  return draw.wide(f.fraction_bits);
}

/// The word a few units in the last place away; itself where that is no finite number.
constexpr std::uint64_t nudged(const OperandWords& f, std::uint64_t word, int units) {
  const std::uint64_t moved =
      (word + (static_cast<std::uint64_t>(static_cast<std::int64_t>(units)) << f.ignored)) & f.mask;
  return is_finite(f, moved) ? moved : word;
}

/// 2^exponent, for exponents of normal FP64 numbers.
constexpr double power_of_two(int exponent) {
  return std::bit_cast<double>(static_cast<std::uint64_t>(exponent + 1023) << 52);
}

/// A finite word's value; exact, and inputs are made with it, never results.
constexpr double double_of(const OperandWords& f, std::uint64_t word) {
  if (f.fraction_bits == 52) return std::bit_cast<double>(word);
  const std::uint64_t magnitude = (word & ~f.sign) >> f.ignored;
  const int width = f.fraction_bits - f.ignored;
  const auto biased = static_cast<int>(magnitude >> width);
  std::uint64_t significand = magnitude & ((std::uint64_t{1} << width) - 1);
  if (biased != 0) significand |= std::uint64_t{1} << width;
  const int unit = (biased != 0 ? biased - f.bias : f.least_normal) - width;
  const double value =
      static_cast<double>(static_cast<std::uint32_t>(significand)) * power_of_two(unit);
  return (word & f.sign) != 0 ? -value : value;
}

/// The word of a value rounded toward zero; the largest finite one for what is too large.
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

}  // namespace guardbit::gpu
