#include "tests/oracle/arithmetic.hpp"

#include <algorithm>

namespace guardbit::oracle {
namespace {

Integer signed_at(const Number& number, int exponent) {
  const Integer magnitude = floor_at(number.magnitude, exponent).quotient;
  return number.negative ? Integer(-magnitude) : magnitude;
}

/// Quotients and roots need not be dyadic. They are cut at an exponent so far below the format's
/// finest spacing that no rounding (stochastic ones look at 64 bits) can tell two numbers inside
/// one unit apart, and anything cut off is represented by half a unit.
int cut_exponent(const FormatParameters& format) { return spacing_exponent(format) - 80; }

Dyadic with_cut(const Integer& units, bool exact, int exponent) {
  return {units * 2 + (exact ? 0 : 1), exponent - 1};
}

/// The largest integer whose square is not above x, by Newton's iteration from above. Boost's own
/// function of Boost 1.83 (Ubuntu 24.04) computes for minutes on some numbers of few bits.
Integer floor_root(const Integer& x) {
  if (x.is_zero()) return x;
  Integer root = Integer(1) << (msb(x) / 2 + 1);
  for (;;) {
    const Integer next = (root + x / root) >> 1;
    if (next >= root) return root;
    root = next;
  }
}

}  // namespace

Number exact_sum(const Number& a, const Number& b, const Rounding& rounding) {
  if (a.is_nan() || b.is_nan()) return nan();
  if (a.is_infinity() && b.is_infinity()) return a.negative == b.negative ? a : nan();
  if (a.is_infinity()) return a;
  if (b.is_infinity()) return b;
  const int exponent = a.is_zero()   ? b.magnitude.exponent
                       : b.is_zero() ? a.magnitude.exponent
                                     : std::min(a.magnitude.exponent, b.magnitude.exponent);
  const Integer sum = signed_at(a, exponent) + signed_at(b, exponent);
  if (sum.is_zero()) {
    const bool common_sign = a.is_zero() && b.is_zero() && a.negative == b.negative;
    return zero(common_sign ? a.negative : rounding.mode == Rounding::Mode::downward);
  }
  return {Number::Kind::finite, sum.sign() < 0, {abs(sum), exponent}};
}

Number exact_product(const Number& a, const Number& b) {
  if (a.is_nan() || b.is_nan()) return nan();
  const bool negative = a.negative != b.negative;
  if (a.is_infinity() || b.is_infinity())
    return a.is_zero() || b.is_zero() ? nan() : infinity(negative);
  if (a.is_zero() || b.is_zero()) return zero(negative);
  return {Number::Kind::finite, negative, product(a.magnitude, b.magnitude)};
}

std::uint64_t add(const FormatParameters& format, const Number& a, const Number& b,
                  const Rounding& rounding, const Overflow& overflow) {
  return encode(format, exact_sum(a, b, rounding), rounding, overflow);
}

std::uint64_t sub(const FormatParameters& format, const Number& a, const Number& b,
                  const Rounding& rounding, const Overflow& overflow) {
  return add(format, a, negated(b), rounding, overflow);
}

std::uint64_t mul(const FormatParameters& format, const Number& a, const Number& b,
                  const Rounding& rounding, const Overflow& overflow) {
  return encode(format, exact_product(a, b), rounding, overflow);
}

std::uint64_t div(const FormatParameters& format, const Number& a, const Number& b,
                  const Rounding& rounding, const Overflow& overflow) {
  const bool negative = a.negative != b.negative;
  Number result{Number::Kind::finite, negative, {}};
  if (a.is_nan() || b.is_nan() || (a.is_zero() && b.is_zero()) ||
      (a.is_infinity() && b.is_infinity())) {
    result = nan();
  } else if (a.is_infinity() || b.is_zero()) {
    result = infinity(negative);
  } else if (!b.is_infinity() && !a.is_zero()) {
    // Scale both sides to integers first, then the dividend so that the quotient counts cut units.
    const int common = std::min(a.magnitude.exponent, b.magnitude.exponent);
    Integer dividend = floor_at(a.magnitude, common).quotient;
    Integer divisor = floor_at(b.magnitude, common).quotient;
    const int cut = cut_exponent(format);
    (cut < 0 ? dividend : divisor) <<= static_cast<unsigned>(cut < 0 ? -cut : cut);
    Integer quotient, remainder;
    divide_qr(dividend, divisor, quotient, remainder);
    result.magnitude = with_cut(quotient, remainder.is_zero(), cut);
  }
  return encode(format, result, rounding, overflow);
}

std::uint64_t sqrt(const FormatParameters& format, const Number& a, const Rounding& rounding,
                   const Overflow& overflow) {
  if (a.is_nan() || a.is_zero()) return encode(format, a, rounding, overflow);
  if (a.negative) return encode(format, nan(), rounding, overflow);
  if (a.is_infinity()) return encode(format, a, rounding, overflow);
  const int cut = std::min(cut_exponent(format), a.magnitude.exponent);
  // sqrt(x) in units of 2^cut is the root of x in units of 2^(2 cut).
  const Floor radicand = floor_at(a.magnitude, 2 * cut);
  const Integer root = floor_root(radicand.quotient);
  const bool exact = radicand.exact && root * root == radicand.quotient;
  return encode(format, {Number::Kind::finite, false, with_cut(root, exact, cut)}, rounding,
                overflow);
}

std::uint64_t fma(const FormatParameters& format, const Number& a, const Number& b, const Number& c,
                  const Rounding& rounding, const Overflow& overflow) {
  return encode(format, exact_sum(exact_product(a, b), c, rounding), rounding, overflow);
}

}  // namespace guardbit::oracle
