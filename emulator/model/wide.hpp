#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "formats/value.hpp"

// Sums of any products without loss, in integers of several words.
namespace guardbit::emulator {

/// A two's-complement fixed-point accumulator of `Bits` bits whose last bit is worth 2^LastPlace:
/// wide enough to add every product of a format without loss.
template <int Bits, int LastPlace>
class WideSum {
 public:
  /// Adds (-1)^negative * significand * 2^exponent, which must lie on the grid and within the
  /// width.
  constexpr void add(bool negative, formats::uint128 significand, int exponent) {
    const int shift = exponent - LastPlace;
    std::array<std::uint64_t, words> addend{};
    for (int part = 0; part < 2; ++part) {
      const auto word = static_cast<std::uint64_t>(significand >> (64 * part));
      const int position = shift + 64 * part;
      const auto index = static_cast<std::size_t>(position / 64);
      const int offset = position % 64;
      if (word == 0) continue;
      addend.at(index) |= word << offset;
      if (offset != 0 && (word >> (64 - offset)) != 0)
        addend.at(index + 1) |= word >> (64 - offset);
    }
    if (negative) negate(addend);
    std::uint64_t carry = 0;
    for (std::size_t i = 0; i < words; ++i) {
      const formats::uint128 sum = formats::uint128{words_[i]} + addend[i] + carry;
      words_[i] = static_cast<std::uint64_t>(sum);
      carry = static_cast<std::uint64_t>(sum >> 64);
    }
  }

  /// The sum, exactly: its leading 128 bits and a tail.
  constexpr formats::Unrounded total() const {
    std::array<std::uint64_t, words> magnitude = words_;
    const bool negative = (words_[words - 1] >> 63) != 0;
    if (negative) negate(magnitude);
    std::size_t top = words;
    while (top > 0 && magnitude[top - 1] == 0) --top;
    if (top == 0) return {};
    formats::Unrounded sum{formats::Kind::finite, negative, LastPlace, magnitude[top - 1], false};
    if (top >= 2) {
      sum.significand = (sum.significand << 64) | magnitude[top - 2];
      sum.exponent = LastPlace + static_cast<int>(64 * (top - 2));
    }
    for (std::size_t i = 0; i + 2 < top; ++i) sum.sticky = sum.sticky || magnitude[i] != 0;
    return sum;
  }

 private:
  static constexpr std::size_t words = (Bits + 63) / 64;

  static constexpr void negate(std::array<std::uint64_t, words>& x) {
    bool carry = true;
    for (std::uint64_t& word : x) {
      word = ~word + (carry ? 1 : 0);
      carry = carry && word == 0;
    }
  }

  std::array<std::uint64_t, words> words_{};
};

}  // namespace guardbit::emulator
