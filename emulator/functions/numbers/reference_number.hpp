#pragma once

#include <bit>
#include <cstdint>

#include "formats/arithmetic.hpp"
#include "formats/codec.hpp"
#include "formats/format_catalogue.hpp"

// FP32 numbers in integers, as programs of functions use them. Programs are templates over a type
// of numbers with what stands here: operations that IEEE 754 rounds once, comparisons, selections,
// codes. host_number.hpp has the same on the host's own units.
namespace guardbit::emulator {

class ReferenceNumber {
 public:
  using Word = std::uint32_t;
  using Mask = bool;

  constexpr ReferenceNumber() = default;
  constexpr ReferenceNumber(float x)
      : code_(std::bit_cast<Word>(x)) {}  // NOLINT(google-explicit-constructor): constants
  static constexpr ReferenceNumber of(Word code) {
    ReferenceNumber x;
    x.code_ = code;
    return x;
  }
  /// A signed integer, rounded to nearest.
  static constexpr ReferenceNumber of_integer(Word integer) {
    const auto n = static_cast<std::int32_t>(integer);
    return rounded({n == 0 ? formats::Kind::zero : formats::Kind::finite, n < 0, 0,
                    n < 0 ? -static_cast<formats::uint128>(n) : static_cast<formats::uint128>(n),
                    false});
  }

  friend constexpr Word bits(ReferenceNumber x) { return x.code_; }

  friend constexpr ReferenceNumber operator+(ReferenceNumber x, ReferenceNumber y) {
    return rounded(formats::add(x.exact(), y.exact()));
  }
  friend constexpr ReferenceNumber operator-(ReferenceNumber x, ReferenceNumber y) {
    return rounded(formats::subtract(x.exact(), y.exact()));
  }
  friend constexpr ReferenceNumber operator*(ReferenceNumber x, ReferenceNumber y) {
    return rounded(formats::multiply(x.value(), y.value()));
  }
  friend constexpr ReferenceNumber operator/(ReferenceNumber x, ReferenceNumber y) {
    return rounded(formats::divide(x.value(), y.value()));
  }
  friend constexpr ReferenceNumber operator-(ReferenceNumber x) { return of(x.code_ ^ sign_mask); }
  friend constexpr ReferenceNumber square_root(ReferenceNumber x) {
    return rounded(formats::square_root(x.value()));
  }
  friend constexpr ReferenceNumber divide(ReferenceNumber x, ReferenceNumber y,
                                          formats::Rounding rounding) {
    return rounded(formats::divide(x.value(), y.value()), rounding);
  }
  friend constexpr ReferenceNumber square_root(ReferenceNumber x, formats::Rounding rounding) {
    return rounded(formats::square_root(x.value()), rounding);
  }
  /// x y + z, rounded once.
  friend constexpr ReferenceNumber fma(ReferenceNumber x, ReferenceNumber y, ReferenceNumber z) {
    return rounded(formats::fused_multiply_add(x.value(), y.value(), z.value()));
  }
  /// The same, rounded downward.
  friend constexpr ReferenceNumber fma_down(ReferenceNumber x, ReferenceNumber y,
                                            ReferenceNumber z) {
    return rounded(formats::fused_multiply_add(x.value(), y.value(), z.value(), true),
                   formats::Rounding::downward);
  }
  friend constexpr ReferenceNumber add_toward_zero(ReferenceNumber x, ReferenceNumber y) {
    return rounded(formats::add(x.exact(), y.exact()), formats::Rounding::toward_zero);
  }
  friend constexpr ReferenceNumber multiply_toward_zero(ReferenceNumber x, ReferenceNumber y) {
    return rounded(formats::multiply(x.value(), y.value()), formats::Rounding::toward_zero);
  }

  /// x, of which multiples of y are taken as often as they go, times 2^exponent. Exact. Both are
  /// positive or 0; a NaN where x is not finite or y is 0.
  friend constexpr ReferenceNumber truncated_remainder(ReferenceNumber x, ReferenceNumber y,
                                                       int exponent) {
    const formats::Value a = x.value(), b = y.value();
    if (x.is_nan() || y.is_nan() || x.code_ == infinity || y.code_ == 0) return of(0x7fffffff);
    if (x.code_ == 0) return x;
    if (y.code_ == infinity) return scaled(a.significand, a.exponent + exponent);
    std::uint64_t rest = a.significand, divisor = b.significand;
    if (a.exponent < b.exponent) {
      const int shift = b.exponent - a.exponent;
      return scaled(shift < 32 ? rest % (divisor << shift) : rest, a.exponent + exponent);
    }
    rest %= divisor;
    for (int e = a.exponent; e > b.exponent; --e) rest = 2 * rest % divisor;
    return scaled(rest, b.exponent + exponent);
  }

  friend constexpr ReferenceNumber abs(ReferenceNumber x) { return of(x.code_ & ~sign_mask); }
  friend constexpr ReferenceNumber copysign(ReferenceNumber magnitude, ReferenceNumber sign) {
    return of((magnitude.code_ & ~sign_mask) | (sign.code_ & sign_mask));
  }
  /// 0 with x's sign for a subnormal x, else x.
  friend constexpr ReferenceNumber flushed(ReferenceNumber x) {
    return (x.code_ & ~sign_mask) < 1U << 23 ? of(x.code_ & sign_mask) : x;
  }
  /// To an integer: ties to even, and toward zero. Zeros keep the sign.
  friend constexpr ReferenceNumber rint(ReferenceNumber x) {
    return x.integral(formats::Rounding::nearest_even);
  }
  friend constexpr ReferenceNumber trunc(ReferenceNumber x) {
    return x.integral(formats::Rounding::toward_zero);
  }
  /// Cut to a signed integer, the nearest one where there is none, 0 of a NaN.
  friend constexpr Word integer(ReferenceNumber x) {
    if (x.is_nan()) return 0;
    return static_cast<Word>(
        formats::convert(formats::fp32, x.code_, formats::int32, formats::Rounding::toward_zero));
  }
  /// n / 2^64, rounded to FP64, times a quarter turn in FP64, rounded again, then to FP32.
  friend constexpr ReferenceNumber quarter_turns(ReferenceNumber, std::int64_t n) {
    constexpr std::uint64_t scale = 0x3BF921FB54442D19;  // pi / 2^65
    const formats::uint128 magnitude =
        n < 0 ? -static_cast<formats::uint128>(n) : static_cast<formats::uint128>(n);
    const std::uint64_t wide = formats::encode(
        formats::fp64,
        {n == 0 ? formats::Kind::zero : formats::Kind::finite, n < 0, 0, magnitude, false});
    const std::uint64_t product =
        formats::encode(formats::fp64, formats::multiply(formats::decode(formats::fp64, wide),
                                                         formats::decode(formats::fp64, scale)));
    return of(static_cast<Word>(formats::convert(formats::fp64, product, formats::fp32)));
  }

  friend constexpr Mask operator==(ReferenceNumber x, ReferenceNumber y) {
    return !x.is_nan() && !y.is_nan() && x.order() == y.order();
  }
  friend constexpr Mask operator<(ReferenceNumber x, ReferenceNumber y) {
    return !x.is_nan() && !y.is_nan() && x.order() < y.order();
  }
  friend constexpr Mask operator>(ReferenceNumber x, ReferenceNumber y) { return y < x; }
  friend constexpr Mask operator<=(ReferenceNumber x, ReferenceNumber y) { return x < y || x == y; }
  friend constexpr Mask operator>=(ReferenceNumber x, ReferenceNumber y) { return y <= x; }

  friend constexpr ReferenceNumber select(Mask mask, ReferenceNumber yes, ReferenceNumber no) {
    return mask ? yes : no;
  }
  /// The same of functions, of which only the one that is needed is called.
  template <class Yes, class No>
  static constexpr ReferenceNumber choose(Mask mask, const Yes& yes, const No& no) {
    return mask ? yes() : no();
  }

 private:
  static constexpr Word sign_mask = 0x80000000, infinity = 0x7f800000;

  static constexpr ReferenceNumber scaled(std::uint64_t significand, int exponent) {
    return rounded({significand == 0 ? formats::Kind::zero : formats::Kind::finite, false, exponent,
                    significand, false});
  }

  static constexpr ReferenceNumber rounded(
      const formats::Unrounded& x, formats::Rounding rounding = formats::Rounding::nearest_even) {
    constexpr formats::Format fp32 = formats::fp32;  // a device has no address of the other one
    constexpr formats::Overflow one_nan = {.nan = formats::Overflow::Nan::all_ones};
    return of(static_cast<Word>(formats::encode(fp32, x, rounding, one_nan)));
  }
  constexpr formats::Value value() const {
    constexpr formats::Format fp32 = formats::fp32;
    return formats::decode(fp32, code_);
  }
  constexpr formats::Unrounded exact() const { return formats::exactly(value()); }
  constexpr bool is_nan() const { return (code_ & ~sign_mask) > 0x7f800000; }
  /// Numbers in their order; both zeros are 0.
  constexpr std::int64_t order() const {
    const std::int64_t magnitude = code_ & ~sign_mask;
    return (code_ & sign_mask) != 0 ? -magnitude : magnitude;
  }
  constexpr ReferenceNumber integral(formats::Rounding rounding) const {
    const formats::Value x = value();
    if (x.kind != formats::Kind::finite || x.exponent >= 0) return *this;
    const formats::uint128 kept =
        formats::shift_right_and_round(formats::uint128{x.significand}, -x.exponent, false,
                                       x.negative, rounding)
            .significand;
    return rounded(
        {kept == 0 ? formats::Kind::zero : formats::Kind::finite, x.negative, 0, kept, false});
  }

  Word code_ = 0;
};

}  // namespace guardbit::emulator
