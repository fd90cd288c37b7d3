#include "experiments/quantisation/requantisation.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>

namespace guardbit::experiments {

namespace {

/// floor(x / 2^shift + 1/2): ties upward.
std::int64_t shifted_upward(std::int64_t x, int shift) {
  return (x + (std::int64_t{1} << (shift - 1))) >> shift;
}

/// x / 2^shift to the nearest integer, ties away from zero.
std::int64_t shifted_away(std::int64_t x, int shift) {
  if (shift == 0) return x;
  const std::int64_t magnitude = shifted_upward(std::abs(x), shift);
  return x < 0 ? -magnitude : magnitude;
}

std::int64_t twice_rounded(std::int32_t sum, const FixedPointFactor& f) {
  // A shift to the left is made first, and wraps as the int32 multiplication there does.
  const int left = std::max(f.shift, 0), right = std::max(-f.shift, 0);
  const auto shifted = static_cast<std::int32_t>(static_cast<std::uint32_t>(sum) << left);
  // The multiplier is never -2^31, so the doubled product cannot overflow.
  return shifted_away(shifted_upward(std::int64_t{shifted} * f.multiplier, 31), right);
}

/// sum * factor to the nearest even integer. The significand has 24 bits, so the product of the
/// integers lies below 2^55.
std::int64_t exact_product(std::int32_t sum, float factor) {
  int exponent = 0;
  const float significand = std::frexp(factor, &exponent);
  const std::int64_t product = sum * static_cast<std::int64_t>(std::ldexp(significand, 24));
  const int shift = 24 - exponent;
  if (shift <= 0) return product * (std::int64_t{1} << -shift);  // below 2^61, as factor < 2^30
  if (shift > 56) return 0;                                      // below one half
  const std::int64_t whole = product >> shift, half = std::int64_t{1} << (shift - 1);
  const std::int64_t rest = product - whole * (std::int64_t{1} << shift);
  return whole + (rest > half || (rest == half && whole % 2 != 0) ? 1 : 0);
}

}  // namespace

FixedPointFactor fixed_point(double factor) {
  assert(factor > 0 && factor < 0x1p30);
  FixedPointFactor result;
  const double significand = std::frexp(factor, &result.shift);
  auto multiplier = static_cast<std::int64_t>(std::round(std::ldexp(significand, 31)));
  if (multiplier == std::int64_t{1} << 31) {
    multiplier /= 2;
    ++result.shift;
  }
  if (result.shift < -31) return {};
  result.multiplier = static_cast<std::int32_t>(multiplier);
  return result;
}

Requantisation::Requantisation(RequantisationRule rule, float factor)
    : rule_(rule), factor_(factor), fixed_(fixed_point(factor)) {}

std::int64_t Requantisation::operator()(std::int32_t sum) const {
  switch (rule_) {
    case RequantisationRule::double_rounding: return twice_rounded(sum, fixed_);
    case RequantisationRule::single_rounding:
      // Below 2^62: |sum| <= 2^31, multiplier < 2^31; half a unit is below that.
      return shifted_upward(std::int64_t{sum} * fixed_.multiplier, 31 - fixed_.shift);
    case RequantisationRule::fp32:
      return static_cast<std::int64_t>(std::nearbyint(static_cast<float>(sum) * factor_));
    case RequantisationRule::exact: break;
  }
  return exact_product(sum, factor_);
}

std::int32_t Requantisation::operator()(std::int32_t sum, std::int32_t zero, std::int32_t low,
                                        std::int32_t high) const {
  const std::int64_t q = (*this)(sum) + zero;
  return static_cast<std::int32_t>(std::clamp<std::int64_t>(q, low, high));
}

}  // namespace guardbit::experiments
