#pragma once

#include <algorithm>
#include <bit>
#include <cassert>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/value.hpp"

// Sums of magnitudes and of squares in integers of fixed width.
namespace guardbit::experiments {

/// An unsigned sum of 192 bits: 2^64 squares of FP64 significands fit.
struct Sum192 {
  formats::uint128 low = 0;
  std::uint64_t high = 0;

  constexpr void add(formats::uint128 x) {
    low += x;
    high += low < x ? 1 : 0;
  }
  constexpr void add(const Sum192& other) {
    add(other.low);
    high += other.high;
  }
  friend constexpr bool operator==(const Sum192&, const Sum192&) = default;
};

/// The last places of sums of FP64 magnitudes and of their squares.
inline constexpr int lowest_magnitude = -1074;
inline constexpr int lowest_square = 2 * lowest_magnitude;

/// significand * 2^exponent, rounded once: to 53 bits, or to a multiple of 2^-1074 where the result
/// is subnormal.
inline double rounded_double(std::uint64_t significand, int exponent) {
  const int top = 63 - std::countl_zero(significand) + exponent;
  const int last_place = std::max(top - 52, -1074);
  const int drop = last_place - exponent;
  if (drop <= 0) return std::ldexp(static_cast<double>(significand), exponent);
  if (drop > 64) return 0;
  const std::uint64_t kept = drop == 64 ? 0 : significand >> drop;
  const std::uint64_t half = std::uint64_t{1} << (drop - 1);
  const std::uint64_t rest = significand & (half | (half - 1));
  const bool up = rest > half || (rest == half && (kept & 1U) != 0);
  return std::ldexp(static_cast<double>(kept + (up ? 1 : 0)), last_place);
}

/// The nearest double, ties to even, to the unsigned integer of these limbs, the lowest one first,
/// times 2^lowest; infinity past the largest.
inline double nearest_double(std::span<const std::uint64_t> limbs, int lowest) {
  std::size_t used = limbs.size();
  while (used > 0 && limbs[used - 1] == 0) --used;
  if (used == 0) return 0;
  const int width = static_cast<int>(64 * used) - std::countl_zero(limbs[used - 1]);
  // 64 leading bits, the last of which says whether anything lies below: two more than a double
  // keeps, so rounding them is rounding the number. Subnormal results keep fewer still.
  if (width <= 64) return rounded_double(limbs[0], lowest);
  const auto below = static_cast<std::size_t>(width - 64);
  std::uint64_t leading = limbs[below / 64] >> (below % 64);
  if (below % 64 != 0) leading |= limbs[below / 64 + 1] << (64 - below % 64);
  bool sticky = below % 64 != 0 && limbs[below / 64] << (64 - below % 64) != 0;
  for (std::size_t i = 0; i < below / 64; ++i) sticky = sticky || limbs[i] != 0;
  return rounded_double(leading | (sticky ? 1U : 0U), lowest + static_cast<int>(below));
}

/// A fixed-point number that holds any sum of terms of at least 2^lowest, exactly; so the order of
/// the terms does not matter.
class ExactSum {
 public:
  explicit ExactSum(int lowest) : lowest_(lowest) {}

  /// Adds term * 2^exponent; exponent is at least `lowest`.
  void add(std::uint64_t term, int exponent) {
    const auto shift = static_cast<std::size_t>(exponent - lowest_);
    const formats::uint128 wide = formats::uint128{term} << (shift % 64);
    add_limb(shift / 64, static_cast<std::uint64_t>(wide));
    add_limb(shift / 64 + 1, static_cast<std::uint64_t>(wide >> 64));
  }
  void add(const Sum192& term, int exponent) {
    add(static_cast<std::uint64_t>(term.low), exponent);
    add(static_cast<std::uint64_t>(term.low >> 64), exponent + 64);
    add(term.high, exponent + 128);
  }

  /// Adds a sum of the same `lowest`.
  void add(const ExactSum& other) {
    assert(lowest_ == other.lowest_);
    for (std::size_t i = 0; i < other.limbs_.size(); ++i) add_limb(i, other.limbs_[i]);
  }

  /// "1f3p-40": a hexadecimal integer times a power of two, "0" for zero. Exact.
  std::string text() const {
    const std::size_t used = top();
    if (used == 0) return "0";
    std::string digits;
    for (std::size_t i = 16 * used; i-- > 0;)
      digits += "0123456789abcdef"[limbs_[i / 16] >> (4 * (i % 16)) & 0xFU];
    digits.erase(0, digits.find_first_not_of('0'));
    const std::size_t kept = digits.find_last_not_of('0') + 1;
    const int exponent = lowest_ + 4 * static_cast<int>(digits.size() - kept);
    return digits.substr(0, kept) + "p" + std::to_string(exponent);
  }
  /// Adds what text() wrote of a sum of the same `lowest`; false for any other text.
  bool add_text(std::string_view text) {
    if (text == "0") return true;
    const std::size_t p = text.find('p');
    int exponent = 0;
    if (p == 0 || p == std::string_view::npos || p > 16 * largest_limbs) return false;
    const char* const end = text.data() + text.size();
    const auto [read, error] = std::from_chars(text.data() + p + 1, end, exponent);
    const int largest = lowest_ + 64 * largest_limbs - 4 * static_cast<int>(p);
    if (error != std::errc{} || read != end || exponent < lowest_ || exponent > largest)
      return false;
    for (std::size_t i = 0; i < p; ++i) {
      const std::size_t digit = std::string_view("0123456789abcdef").find(text[p - 1 - i]);
      if (digit == std::string_view::npos) return false;
      add(digit, exponent + 4 * static_cast<int>(i));
    }
    return true;
  }

  bool is_zero() const { return top() == 0; }

  friend bool operator==(const ExactSum&, const ExactSum&) = default;

  /// The nearest double, ties to even; infinity past the largest.
  double nearest() const { return nearest_double(limbs_, lowest_); }

 private:
  /// 2^64 squares of FP64's largest need 69
  static constexpr int largest_limbs = 80;

  std::size_t top() const {
    std::size_t used = limbs_.size();
    while (used > 0 && limbs_[used - 1] == 0) --used;
    return used;
  }

  void add_limb(std::size_t at, std::uint64_t x) {
    while (x != 0) {
      if (at >= limbs_.size()) limbs_.resize(at + 1);
      limbs_[at] += x;
      x = limbs_[at] < x ? 1 : 0;
      ++at;
    }
  }

  int lowest_;
  /// the lowest one first; no zero on top
  std::vector<std::uint64_t> limbs_;
};

}  // namespace guardbit::experiments
