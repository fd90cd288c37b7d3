#pragma once

#include <cstdint>

namespace guardbit::formats {

__extension__ using uint128 = unsigned __int128;
__extension__ using int128 = __int128;

enum class Kind : std::uint8_t { zero, finite, infinity, nan };

/// A decoded code, exactly: (-1)^negative * significand * 2^exponent when finite. The significand
/// is not normalised: a subnormal keeps the exponent of the format's smallest normal, which is what
/// matrix units align by (NUMERICS 1.1). For a NaN, `significand` holds the fraction as FP64 would
/// (quiet bit at 51, lower payload bits below it).
struct Value {
  Kind kind = Kind::zero;
  bool negative = false;
  /// of the significand's unit
  int exponent = 0;
  std::uint64_t significand = 0;

  friend constexpr bool operator==(const Value&, const Value&) = default;
};

/// The exact result of an operation on Values, before its one rounding: (significand + tail) *
/// 2^exponent, where the tail is 0, or somewhere strictly between 0 and 1 when `sticky`.
struct Unrounded {
  Kind kind = Kind::zero;
  bool negative = false;
  int exponent = 0;
  uint128 significand = 0;
  bool sticky = false;
};

inline constexpr std::uint64_t quiet_bit = std::uint64_t{1} << 51;

constexpr Unrounded exactly(const Value& v) {
  return {v.kind, v.negative, v.exponent, v.significand, false};
}

constexpr Value nan_value(bool negative = false) { return {Kind::nan, negative, 0, quiet_bit}; }
constexpr Value infinity_value(bool negative) { return {Kind::infinity, negative, 0, 0}; }
constexpr Value zero_value(bool negative) { return {Kind::zero, negative, 0, 0}; }

/// Position of the leading one; -1 for zero. Not std::bit_width: libstdc++ writes it with
/// __builtin_clzl, which nvcc 13.0 compiles to 0 in device code (measured on an H200).
constexpr int leading_bit(uint128 x) {
  const auto high = static_cast<unsigned long long>(x >> 64);
  const auto low = static_cast<unsigned long long>(x);
  if (high != 0) return 127 - __builtin_clzll(high);
  return low != 0 ? 63 - __builtin_clzll(low) : -1;
}

}  // namespace guardbit::formats
