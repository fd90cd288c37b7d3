#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "formats/conversion/kernels/philox_keys.hpp"
#include "formats/random.hpp"

namespace guardbit::formats::kernels {

/// One 32-bit word as a vector of one lane: what every kernel does with a vector, in plain C++. The
/// other Lanes have the same members. Shifts by 32 and more give zero; comparisons are unsigned.
struct PortableLanes {
  static constexpr std::size_t count = 1;
  using Word = std::uint32_t;
  using Mask = bool;

  static Word set(std::uint32_t x) { return x; }
  static Word load(const std::byte* at) { return load_as<std::uint32_t>(at); }
  static Word load16(const std::byte* at) { return load_as<std::uint16_t>(at); }
  static Word load8(const std::byte* at) { return load_as<std::uint8_t>(at); }
  static void store(std::byte* at, Word x) { std::memcpy(at, &x, sizeof x); }

  static Word shift_left(Word x, Word n) { return n < 32 ? x << n : 0; }
  static Word shift_right(Word x, Word n) { return n < 32 ? x >> n : 0; }
  /// max(x - y, 0) of numbers below 2^16.
  static Word excess(Word x, Word y) { return x > y ? x - y : 0; }
  static Word smaller(Word x, Word y) { return x < y ? x : y; }
  static Word larger(Word x, Word y) { return x > y ? x : y; }
  /// of the lanes
  static std::uint32_t largest(Word x) { return x; }
  static Mask at_least(Word x, Word y) { return x >= y; }
  static Mask equal(Word x, Word y) { return x == y; }
  static Mask either(Mask x, Mask y) { return x || y; }
  static Mask both(Mask x, Mask y) { return x && y; }
  static Mask without(Mask x, Mask y) { return x && !y; }
  static bool any(Mask x) { return x; }
  static Word select(Mask mask, Word yes, Word no) { return mask ? yes : no; }
  static Word negative(Word x) { return x >> 31 != 0 ? ~Word{0} : 0; }
  /// The FP32 code of a signed integer of at most 24 bits.
  static Word float_of(Word x) {
    return std::bit_cast<std::uint32_t>(static_cast<float>(std::bit_cast<std::int32_t>(x)));
  }
  /// significand * (high * 2^32 + low) >> 56, the last bit set if any lost one was. The significand
  /// has 24 bits at most.
  static Word high_product(Word significand, Word high, Word low) {
    const std::uint64_t low_product = std::uint64_t{significand} * low;
    const std::uint64_t product = std::uint64_t{significand} * high + (low_product >> 32);
    const bool lost = (product & 0xFFFFFF) != 0 || (low_product & 0xFFFFFFFF) != 0;
    return static_cast<Word>(product >> 24) | (lost ? 1U : 0U);
  }

  /// Bits 32 to 63 of x * 2^shift + a * b, the first term truncated to an integer and all of it to
  /// 64 bits. The shift is in two's complement.
  static Word upper_of_sum(Word x, Word shift, Word a, Word b) {
    const std::uint64_t shifted = shift < 64    ? std::uint64_t{x} << shift
                                  : -shift < 64 ? std::uint64_t{x} >> -shift
                                                : 0;
    return static_cast<Word>((shifted + std::uint64_t{a} * b) >> 32);
  }
  /// Which of eight words each index names.
  static Word pick(const std::uint32_t* words, Word index) { return words[index]; }

  /// Four vectors of codes to 4 * count containers. `stream` past the caches: `at` is a multiple of
  /// the bytes stored then.
  static void store8(std::byte* at, Word x0, Word x1, Word x2, Word x3, bool /*stream*/) {
    store(at, x0 | x1 << 8 | x2 << 16 | x3 << 24);
  }
  static void store16(std::byte* at, Word x0, Word x1, Word x2, Word x3, bool /*stream*/) {
    store(at, x0 | x1 << 16);
    store(at + 4, x2 | x3 << 16);
  }
  static void store32(std::byte* at, Word x0, Word x1, Word x2, Word x3, bool /*stream*/) {
    store(at, x0);
    store(at + 4, x1);
    store(at + 8, x2);
    store(at + 12, x3);
  }
  static void finish_streams() {}

  /// The words of random_bits for the elements [first, first + 16), first a multiple of 4.
  static void random_words(const PhiloxKeys& keys, std::uint64_t first, std::uint32_t* words) {
    for (std::uint64_t block = 0; block < 4; ++block) {
      const std::uint64_t counter = first / 4 + block;
      const auto four = philox4x32(
          {static_cast<std::uint32_t>(counter), static_cast<std::uint32_t>(counter >> 32), 0, 0},
          {static_cast<std::uint32_t>(keys[0][0]), static_cast<std::uint32_t>(keys[0][1])});
      std::memcpy(words + 4 * block, four.data(), sizeof four);
    }
  }
  static constexpr std::size_t random_step = 16;

 private:
  template <class Integer>
  static Word load_as(const std::byte* at) {
    Integer x = 0;
    std::memcpy(&x, at, sizeof x);
    return x;
  }
};

}  // namespace guardbit::formats::kernels
