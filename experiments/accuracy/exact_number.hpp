#pragma once

#include <array>
#include <bit>
#include <cassert>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

#include "experiments/accuracy/exact_sum.hpp"
#include "formats/value.hpp"

// Exact sums of doubles and of their products, rounded once.
namespace guardbit::experiments {

/// significand * 2^exponent; the significand is odd or 0.
struct Scaled {
  std::int64_t significand = 0;
  int exponent = 0;
};

/// A finite double, exactly.
inline Scaled scaled(double x) {
  if (x == 0) return {};
  int exponent = 0;
  auto significand = static_cast<std::int64_t>(std::ldexp(std::frexp(x, &exponent), 53));
  const int zeros = std::countr_zero(static_cast<std::uint64_t>(significand));
  significand /= std::int64_t{1} << zeros;
  return {significand, exponent - 53 + zeros};
}

/// A signed fixed-point number in two's complement that adds terms exactly. Room for alpha * A * B
/// in FP64: 2^-3222 to 2^3136.
class ExactNumber {
 public:
  /// Zero, for multiples of 2^lowest whose sums stay below 2^highest.
  void reset(int lowest, int highest) {
    assert(highest >= lowest);
    lowest_ = lowest;
    used_ = static_cast<std::size_t>(highest - lowest) / 64 + 2;
    assert(used_ <= limbs_.size());
    for (std::size_t i = 0; i < used_; ++i) limbs_[i] = 0;
  }

  /// Adds term * 2^exponent; exponent is at least the lowest.
  void add(formats::int128 term, int exponent) {
    if (term == 0) return;
    const auto shift = static_cast<std::size_t>(exponent - lowest_);
    const std::size_t bits = shift % 64;
    const auto low = static_cast<std::uint64_t>(term);
    const auto high = static_cast<std::uint64_t>(term >> 64);
    const std::uint64_t sign = term < 0 ? ~std::uint64_t{0} : 0;
    const auto joined = [bits](std::uint64_t upper, std::uint64_t lower) {
      return bits == 0 ? upper : upper << bits | lower >> (64 - bits);
    };
    const std::array<std::uint64_t, 3> words = {low << bits, joined(high, low), joined(sign, high)};
    std::uint64_t carry = 0;
    for (std::size_t i = 0; shift / 64 + i < used_; ++i) {
      // Past the words a sign of ones with a carry, or of zeros without one, changes nothing.
      if (i >= words.size() && carry == (sign & 1U)) break;
      const std::uint64_t word = i < words.size() ? words[i] : sign;
      std::uint64_t& limb = limbs_[shift / 64 + i];
      const auto sum = formats::uint128{limb} + word + carry;
      limb = static_cast<std::uint64_t>(sum);
      carry = static_cast<std::uint64_t>(sum >> 64);
    }
  }

  bool is_negative() const { return limbs_[used_ - 1] >> 63 != 0; }

  /// The nearest double to the number times 2^scale, ties to even.
  double nearest(int scale = 0) const {
    if (!is_negative()) return nearest_double(std::span(limbs_.data(), used_), lowest_ + scale);
    const Limbs opposite = negated();
    return -nearest_double(std::span(opposite.data(), used_), lowest_ + scale);
  }

  /// e with 2^e <= |x| < 2^(e+1); the number is not 0.
  int leading_exponent() const {
    const Limbs limbs = is_negative() ? negated() : limbs_;
    std::size_t top = used_;
    while (limbs[top - 1] == 0) --top;
    return lowest_ + static_cast<int>(64 * top) - 1 - std::countl_zero(limbs[top - 1]);
  }

  bool is_zero() const {
    for (std::size_t i = 0; i < used_; ++i)
      if (limbs_[i] != 0) return false;
    return true;
  }

 private:
  using Limbs = std::array<std::uint64_t, 104>;

  Limbs negated() const {
    Limbs limbs;  // NOLINT(cppcoreguidelines-pro-type-member-init): as many as are used
    std::uint64_t carry = 1;
    for (std::size_t i = 0; i < used_; ++i) {
      limbs[i] = ~limbs_[i] + carry;
      carry = carry != 0 && limbs[i] == 0 ? 1 : 0;
    }
    return limbs;
  }

  Limbs limbs_{};
  std::size_t used_ = 1;
  int lowest_ = 0;
};

}  // namespace guardbit::experiments
