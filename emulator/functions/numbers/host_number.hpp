#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "emulator/functions/numbers/host_unit.hpp"
#include "emulator/functions/unit/special_function_forms.hpp"
#include "formats/rounding.hpp"

// FP32 numbers on the host's own units: what ReferenceNumber has, and the same bits but for those
// of NaNs. -ffp-contract=off keeps products and sums apart.
namespace guardbit::emulator {

/// x y + z by the C library, which is an instruction where the compiler may use one.
struct FmaOfLibrary {
  static float fma(float x, float y, float z) { return std::fma(x, y, z); }
};
/// The same by FP64, for CPUs without the instruction. The product is exact, and the sum rounds to
/// the right number unless it is half way between two, or such that FP32 has fewer bits.
struct FmaByDoubles {
  static float fma(float x, float y, float z) {
    const double sum = double{x} * y + z;
    const auto code = std::bit_cast<std::uint64_t>(sum);
    constexpr std::uint64_t rest_bits = 0x1fffffff, half = 0x10000000;
    constexpr std::uint64_t least_exponent = 1023 - 126;  // FP32's, in FP64
    // One branch for both.
    const auto is_tie = static_cast<unsigned>((code & rest_bits) == half);
    const auto is_small = static_cast<unsigned>(code << 1 < least_exponent << 53);
    if ((is_tie | is_small) != 0) [[unlikely]]
      return std::fma(x, y, z);
    return static_cast<float>(sum);
  }
};

template <class Fma>
class NumberOfHost {
 public:
  using HostNumber = NumberOfHost;
  using Word = std::uint32_t;
  using Mask = bool;

  constexpr NumberOfHost() = default;
  constexpr NumberOfHost(float x) : number_(x) {}  // NOLINT(google-explicit-constructor): constants
  static HostNumber of(Word code) { return std::bit_cast<float>(code); }
  static HostNumber of_integer(Word n) { return static_cast<float>(static_cast<std::int32_t>(n)); }

  float number() const { return number_; }
  friend Word bits(HostNumber x) { return std::bit_cast<Word>(x.number_); }

  friend HostNumber operator+(HostNumber x, HostNumber y) { return x.number_ + y.number_; }
  friend HostNumber operator-(HostNumber x, HostNumber y) { return x.number_ - y.number_; }
  friend HostNumber operator*(HostNumber x, HostNumber y) { return x.number_ * y.number_; }
  friend HostNumber operator/(HostNumber x, HostNumber y) { return x.number_ / y.number_; }
  friend HostNumber operator-(HostNumber x) { return -x.number_; }
  friend HostNumber square_root(HostNumber x) { return std::sqrt(x.number_); }
  /// To nearest even, toward zero, upward or downward.
  friend HostNumber divide(HostNumber x, HostNumber y, formats::Rounding rounding) {
    const float q = x.number_ / y.number_;
    const bool is_exact = x.number_ == 0 || y.number_ == 0 || std::isinf(x.number_) ||
                          std::isinf(y.number_) || std::isnan(q);
    if (is_exact) return q;
    // The product is exact in FP64.
    const double back = double{q} * y.number_, rest = x.number_ - back;
    return directed(q, std::signbit(x.number_) != std::signbit(y.number_),
                    y.number_ < 0 ? -rest : rest, rounding);
  }
  friend HostNumber square_root(HostNumber x, formats::Rounding rounding) {
    const float root = std::sqrt(x.number_);
    if (!(root > 0) || std::isinf(root)) return root;
    return directed(root, false, x.number_ - double{root} * root, rounding);
  }
  friend HostNumber fma(HostNumber x, HostNumber y, HostNumber z) {
    return Fma::fma(x.number_, y.number_, z.number_);
  }
  friend HostNumber fma_down(HostNumber x, HostNumber y, HostNumber z) {
    // The product is exact in FP64; what the sum loses there is `rest`.
    const double product = double{x.number_} * y.number_, sum = product + z.number_;
    const double of_z = sum - product, rest = (product - (sum - of_z)) + (z.number_ - of_z);
    return lowered(static_cast<float>(sum), sum, rest < 0);
  }
  friend HostNumber add_toward_zero(HostNumber x, HostNumber y) {
    const double sum = double{x.number_} + y.number_;
    const double of_y = sum - x.number_, rest = (x.number_ - (sum - of_y)) + (y.number_ - of_y);
    return cut(static_cast<float>(sum), sum, sum < 0 ? rest > 0 : rest < 0);
  }
  friend HostNumber multiply_toward_zero(HostNumber x, HostNumber y) {
    const double product = double{x.number_} * y.number_;  // exact
    return cut(static_cast<float>(product), product, false);
  }

  /// |x|, of which multiples of y > 0 are taken as often as they go, times 2^exponent. Exact.
  friend HostNumber truncated_remainder(HostNumber x, HostNumber y, int exponent) {
    return static_cast<float>(
        std::ldexp(std::fmod(double{x.number_}, double{y.number_}), exponent));
  }

  friend HostNumber abs(HostNumber x) { return std::fabs(x.number_); }
  friend HostNumber copysign(HostNumber magnitude, HostNumber sign) {
    return std::copysign(magnitude.number_, sign.number_);
  }
  friend HostNumber flushed(HostNumber x) {
    return std::fabs(x.number_) < std::numeric_limits<float>::min() ? std::copysign(0.0F, x.number_)
                                                                    : x.number_;
  }
  friend HostNumber rint(HostNumber x) { return std::rint(x.number_); }
  friend HostNumber trunc(HostNumber x) { return std::trunc(x.number_); }
  friend Word integer(HostNumber x) {
    if (x.number_ >= 0x1p31F) return 0x7fffffff;
    if (x.number_ >= -0x1p31F) return static_cast<Word>(static_cast<std::int32_t>(x.number_));
    return x.number_ == x.number_ ? 0x80000000 : 0;
  }
  [[gnu::always_inline]] friend HostNumber evaluate(const mufu::SpecialFunctionForm& form,
                                                    HostNumber x) {
    // Those that scale have no step before.
    const float argument = mufu::apply(form.before, x).number_;
    if (host_unit::is_usual(*form.function, argument)) [[likely]]
      return host_unit::usual(*form.function, argument);
    return with_scaling(form, x);
  }
  friend HostNumber quarter_turns(HostNumber, std::int64_t n) {
    return static_cast<float>(static_cast<double>(n) * 0x1.921fb54442d19p-64);
  }

  friend Mask operator==(HostNumber x, HostNumber y) { return x.number_ == y.number_; }
  friend Mask operator<(HostNumber x, HostNumber y) { return x.number_ < y.number_; }
  friend Mask operator>(HostNumber x, HostNumber y) { return x.number_ > y.number_; }
  friend Mask operator<=(HostNumber x, HostNumber y) { return x.number_ <= y.number_; }
  friend Mask operator>=(HostNumber x, HostNumber y) { return x.number_ >= y.number_; }

  friend HostNumber select(Mask mask, HostNumber yes, HostNumber no) { return mask ? yes : no; }
  template <class Yes, class No>
  static HostNumber choose(Mask mask, const Yes& yes, const No& no) {
    return mask ? yes() : no();
  }

 private:
  [[gnu::noinline]] static HostNumber with_scaling(const mufu::SpecialFunctionForm& form,
                                                   HostNumber x) {
    return mufu::evaluate<HostNumber>(form, x);
  }

  /// The number of that sign that is nearest to another one, rounded in a direction: the sign of
  /// `rest` is that of the other number less this one.
  static HostNumber directed(float nearest, bool negative, double rest,
                             formats::Rounding rounding) {
    const bool is_upward = rounding == formats::Rounding::upward ||
                           (rounding == formats::Rounding::toward_zero && negative);
    if (rest == 0 || rounding == formats::Rounding::nearest_even || is_upward == (rest < 0))
      return nearest;
    const bool is_away = is_upward != negative;
    const Word code = std::bit_cast<Word>(nearest);
    return std::bit_cast<float>(is_away ? code + 1 : code - 1);
  }
  /// The number below `nearest` where that is above `exact`, or is it and there was less still.
  static HostNumber lowered(float nearest, double exact, bool is_less) {
    const bool is_above = nearest > exact || (nearest == exact && is_less);
    return is_above ? std::bit_cast<float>(below(std::bit_cast<Word>(nearest))) : nearest;
  }
  static Word below(Word code) {
    if (code == 0) return 0x80000001;
    return code < 0x80000000 ? code - 1 : code + 1;
  }
  /// The same toward zero.
  static HostNumber cut(float nearest, double exact, bool is_less) {
    const bool is_above = std::fabs(nearest) > std::fabs(exact) || (nearest == exact && is_less);
    return is_above ? std::bit_cast<float>(std::bit_cast<Word>(nearest) - 1) : nearest;
  }

  float number_ = 0;
};

using HostNumber = NumberOfHost<FmaOfLibrary>;
/// The same bits on CPUs that may have no fused instruction.
using BaselineNumber = NumberOfHost<FmaByDoubles>;

}  // namespace guardbit::emulator
