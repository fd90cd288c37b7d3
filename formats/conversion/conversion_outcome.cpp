#include "formats/conversion/conversion_outcome.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "formats/codec.hpp"
#include "formats/random.hpp"

namespace guardbit::formats {

namespace {

bool is_subnormal(const Format& f, const Value& v) {
  return f.encoding == Encoding::floating && v.kind == Kind::finite &&
         (v.significand >> f.fraction_bits) == 0;
}

bool same_magnitude(const Unrounded& x, const Value& y) {
  if (y.kind != Kind::finite || x.sticky) return false;
  const int shift = x.exponent - y.exponent;
  if (shift >= 0)
    return leading_bit(x.significand) + shift < 128 && x.significand << shift == y.significand;
  return leading_bit(y.significand) - shift < 128 && x.significand == uint128{y.significand}
                                                                          << -shift;
}

}  // namespace

void Tally::add(const Outcome& o, std::uint64_t times) {
  counts_.elements += times;
  counts_.nans_in += o.nan_in ? times : 0;
  counts_.zeros_made += o.zero_made ? times : 0;
  counts_.infinities_made += o.infinity_made ? times : 0;
  counts_.nans_made += o.nan_made ? times : 0;
  counts_.saturated += o.saturated ? times : 0;
  counts_.subnormals_made += o.subnormal_made ? times : 0;
  counts_.inexact += o.inexact ? times : 0;
  counts_.compared += o.compared ? times : 0;
  error_sum_ += uint128{o.error} * times;
  if (times != 0) max_error_ = std::max(max_error_, o.error);
}

void Tally::add(const Tally& other) {
  counts_.elements += other.counts_.elements;
  counts_.nans_in += other.counts_.nans_in;
  counts_.zeros_made += other.counts_.zeros_made;
  counts_.infinities_made += other.counts_.infinities_made;
  counts_.nans_made += other.counts_.nans_made;
  counts_.saturated += other.counts_.saturated;
  counts_.subnormals_made += other.counts_.subnormals_made;
  counts_.inexact += other.counts_.inexact;
  counts_.compared += other.counts_.compared;
  error_sum_ += other.error_sum_;
  max_error_ = std::max(max_error_, other.max_error_);
}

void Tally::add(const kernels::LaneCounts& counts, std::uint64_t elements) {
  const auto sum = [](const kernels::LaneCounts::Lanes& lanes) {
    return std::accumulate(lanes.begin(), lanes.end(), std::uint64_t{0});
  };
  counts_.elements += elements;
  counts_.nans_in += sum(counts.nans_in);
  counts_.zeros_made += sum(counts.zeros_made);
  counts_.infinities_made += sum(counts.infinities_made);
  counts_.nans_made += sum(counts.nans_made);
  counts_.saturated += sum(counts.saturated);
  counts_.subnormals_made += sum(counts.subnormals_made);
  counts_.inexact += sum(counts.inexact);
  counts_.compared += elements - sum(counts.uncompared);
  error_sum_ += uint128{sum(counts.error_0)} + (uint128{sum(counts.error_16)} << 16) +
                (uint128{sum(counts.error_32)} << 32) + (uint128{sum(counts.error_48)} << 48);
  for (std::size_t lane = 0; lane < counts.most_upper.size(); ++lane) {
    const std::uint64_t error =
        std::uint64_t{counts.most_upper[lane]} << 32 | counts.most_lower[lane];
    max_error_ = std::max(max_error_, error);
  }
}

ConversionSummary Tally::summary() const {
  ConversionSummary result = counts_;
  result.max_ulp_error = std::ldexp(static_cast<double>(max_error_), -error_bits);
  if (counts_.compared != 0) {
    const double sum = std::ldexp(static_cast<double>(error_sum_), -error_bits);
    result.mean_ulp_error = sum / static_cast<double>(counts_.compared);
  }
  return result;
}

Outcome ElementConversion::operator()(const Value& value, RandomBits random) const {
  const Unrounded x = operand_of(from_, value, options_);
  Outcome outcome;
  if (rounds_in_range(x, random, outcome)) return outcome;
  outcome = {};
  outcome.code = encode(to_, x, options_.rounding, options_.overflow, random);
  describe(x, decode(to_, outcome.code), random, outcome);
  outcome.zero_made = outcome.zero_made || (value.kind == Kind::finite && x.kind == Kind::zero);
  outcome.infinity_made =
      outcome.infinity_made || (value.kind == Kind::finite && x.kind == Kind::infinity &&
                                decode(to_, outcome.code).kind == Kind::infinity);
  return outcome;
}

/// The common case with one rounding: a finite number that becomes one of an ordinary format. False
/// for all others.
bool ElementConversion::rounds_in_range(const Unrounded& x, RandomBits random,
                                        Outcome& outcome) const {
  if (x.kind != Kind::finite || x.sticky || (x.negative && !to_.has_sign)) return false;
  if (!is_integer(to_) && (to_.encoding != Encoding::floating || !to_.has_subnormals)) return false;
  const int top = x.exponent + leading_bit(x.significand);
  if (is_integer(to_) ? top > 63 : top > max_exponent(to_)) return false;
  const int unit = unit_exponent(to_, x);
  const int shift = unit - x.exponent;
  const auto round = [&](auto significand) {
    return shift_right_and_round(significand, shift, false, x.negative, options_.rounding, random);
  };
  std::uint64_t kept = 0;
  if (x.significand >> 64 == 0 && shift >= 0) {
    const auto rounded = round(static_cast<std::uint64_t>(x.significand));
    kept = rounded.significand;
    outcome.inexact = rounded.inexact;
  } else {
    const auto rounded = round(x.significand);
    kept = static_cast<std::uint64_t>(rounded.significand);
    outcome.inexact = rounded.inexact;
  }
  if (is_integer(to_)) {
    if (kept > integer_limit(to_, x.negative)) return false;
    outcome.code = integer_code(to_, x.negative, kept);
  } else {
    const auto binades =
        static_cast<std::uint64_t>(std::max(top, min_exponent(to_)) + to_.bias - 1);
    const std::uint64_t magnitude = (binades << to_.fraction_bits) + kept;
    if (magnitude > max_finite_code(to_)) return false;
    const bool has_sign = x.negative && (magnitude != 0 || has_negative_zero(to_));
    outcome.code = magnitude | (has_sign ? sign_mask(to_) : 0);
    outcome.subnormal_made = magnitude != 0 && magnitude < min_normal_code(to_);
  }
  const uint128 exact = fixed_point(x.significand, x.exponent, unit);
  const uint128 result = uint128{kept} << error_bits;
  outcome.error = static_cast<std::uint64_t>(exact > result ? exact - result : result - exact);
  outcome.zero_made = kept == 0;
  outcome.compared = true;
  return true;
}

RandomBits ElementConversion::random(std::size_t index) const {
  if (options_.rounding != Rounding::stochastic) return {};
  return random_bits(options_.seed, index, options_.random_bits);
}

bool ElementConversion::is_out_of_range(const Unrounded& x, Rounding rounding,
                                        RandomBits random) const {
  Unrounded magnitude = x;
  if (!to_.has_sign && options_.overflow.negative == Overflow::Negative::magnitude)
    magnitude.negative = false;
  return !is_in_range(to_, magnitude, rounding, random);
}

void ElementConversion::describe(const Unrounded& x, const Value& result, RandomBits random,
                                 Outcome& outcome) const {
  outcome.nan_in = x.kind == Kind::nan;
  outcome.nan_made = x.kind != Kind::nan && result.kind == Kind::nan;
  outcome.zero_made = x.kind == Kind::finite && result.kind == Kind::zero;
  outcome.infinity_made = x.kind == Kind::finite && result.kind == Kind::infinity;
  outcome.subnormal_made = is_subnormal(to_, result);
  const bool is_number = result.kind == Kind::finite || result.kind == Kind::zero;
  outcome.inexact = x.kind != Kind::nan && x.kind != result.kind;
  if (x.kind == Kind::infinity) outcome.saturated = is_number;
  outcome.compared = x.kind == Kind::zero && result.kind == Kind::zero;
  if (x.kind != Kind::finite) return;
  const bool out_of_range = is_out_of_range(x, options_.rounding, random);
  outcome.saturated = out_of_range && is_number;
  outcome.compared = !out_of_range && is_number;
  if (outcome.compared) {
    outcome.error = ulp_error(to_, x, outcome.code);
    outcome.inexact = !same_magnitude(x, result);
  } else {
    outcome.inexact = true;
  }
}

}  // namespace guardbit::formats
