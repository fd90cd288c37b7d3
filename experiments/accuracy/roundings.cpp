#include "experiments/accuracy/roundings.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "emulator/gemm/scalar.hpp"

namespace guardbit::experiments {

using formats::Format;
using formats::Rounding;

bool is_nearest(Rounding rounding) {
  return rounding == Rounding::nearest_even || rounding == Rounding::nearest_away;
}

double unit_roundoff(int precision, Rounding rounding) {
  return std::ldexp(1.0, is_nearest(rounding) ? -precision : 1 - precision);
}

double unit_roundoff(const Format& f, Rounding rounding) {
  return formats::is_integer(f) ? 0 : unit_roundoff(formats::precision(f), rounding);
}

double underflow(const Format& f, Rounding rounding) {
  if (formats::is_integer(f)) return is_nearest(rounding) ? 0.5 : 1;
  return (f.has_subnormals ? unit_roundoff(f, rounding) : 1) * smallest_normal(f);
}

double smallest_normal(const Format& f) { return std::ldexp(1.0, formats::min_exponent(f)); }

double largest_number(const Format& f) {
  if (formats::is_integer(f)) return std::ldexp(1.0, f.fraction_bits) - 1;
  return emulator::scalar::decoded(f, formats::max_finite_code(f));
}

bool contains(const Format& to, const Format& from) {
  if (to == from) return true;
  // What does not fit is limited, not rounded.
  if (formats::is_integer(to)) return formats::is_integer(from);
  if (formats::is_integer(from))
    return from.fraction_bits <= formats::precision(to) &&
           from.fraction_bits <= formats::max_exponent(to);
  return formats::precision(from) <= formats::precision(to) &&
         formats::max_exponent(from) <= formats::max_exponent(to) &&
         formats::min_exponent(from) - from.fraction_bits >=
             formats::min_exponent(to) - to.fraction_bits;
}

double constant_error(const Format& f, double x) {
  const double rounded = emulator::scalar::rounded(f, x);
  return rounded == x || !std::isfinite(rounded) ? 0 : std::fabs((rounded - x) / x);
}

Roundings::Roundings()
    : largest_finite(std::numeric_limits<double>::infinity()), largest_limited(largest_finite) {}

void Roundings::add(double error, double square, double count) {
  logarithm += count * std::log1p(error);
  squares += count * square;
  if (count > 0) largest = std::max(largest, error);
}

void Roundings::add(const Roundings& other, double count) {
  logarithm += count * other.logarithm;
  squares += count * other.squares;
  largest = std::max(largest, count > 0 ? other.largest : 0);
  absolute += count * other.absolute;
  mean_zero = mean_zero && (other.mean_zero || count == 0);
  largest_finite = std::min(largest_finite, other.largest_finite);
  largest_limited = std::min(largest_limited, other.largest_limited);
}

void Roundings::convert_to(const Format& f, Rounding rounding) {
  pass(f);
  if (!contains(f, held)) {
    if (formats::precision(f) < formats::precision(held)) add(unit_roundoff(f, rounding));
    absolute += underflow(f, rounding);
    mean_zero = mean_zero && is_nearest(rounding);
  }
  held = f;
}

void Roundings::add_up_in(const Format& f, double count) {
  pass(f);
  add(unit_roundoff(f), count);
  // Additions in BF16 are rounded to FP32 first.
  if (f == formats::bf16) add(unit_roundoff(formats::fp32), count);
  held = f;
}

void Roundings::multiply_in(const Format& f, double count) {
  add_up_in(f, count);
  absolute += count * underflow(f);
}

void Roundings::pass(const Format& f) {
  const bool saturates = formats::is_integer(f) || formats::bits(f) <= 8;
  double& least = saturates ? largest_limited : largest_finite;
  least = std::min(least, largest_number(f));
}

double Roundings::worst() const { return std::expm1(logarithm * (1 + 1e-9)); }

double Roundings::likely(double lambda) const {
  const double few = lambda * std::sqrt(squares) + squares / (1 - std::min(largest, 0.5));
  return std::min(worst(), std::expm1(few));
}

Roundings worse(const Roundings& x, const Roundings& y) {
  Roundings most = y.logarithm >= x.logarithm ? y : x;
  most.absolute = std::max(x.absolute, y.absolute);
  most.mean_zero = x.mean_zero && y.mean_zero;
  most.largest_finite = std::min(x.largest_finite, y.largest_finite);
  most.largest_limited = std::min(x.largest_limited, y.largest_limited);
  return most;
}

}  // namespace guardbit::experiments
