#include "tests/oracle/calibration.hpp"

#include <cmath>
#include <limits>
#include <map>

#include "tests/oracle/number.hpp"

namespace guardbit::oracle {

std::size_t percentile_bin(const Counts& counts, std::int64_t percent_hundredths) {
  Integer total = 0, reached = 0;
  for (const std::int64_t count : counts) total += count;
  for (std::size_t bin = 0; bin < counts.size(); ++bin) {
    reached += counts[bin];
    if (reached * 10000 >= total * percent_hundredths) return bin;
  }
  return counts.size();
}

std::vector<long double> divergences(Counts counts, std::size_t first, std::size_t groups,
                                     bool zero_bin) {
  if (zero_bin) counts[0] = counts[1];
  std::vector<long double> result;
  for (std::size_t i = first; i <= counts.size(); ++i) {
    // The reference: bins below i, and all that lies above in the last of them.
    std::vector<long double> reference(counts.begin(),
                                       counts.begin() + static_cast<std::ptrdiff_t>(i));
    for (std::size_t v = i; v < counts.size(); ++v)
      reference.back() += static_cast<long double>(counts[v]);
    // The candidate: what the bins of a group hold, shared by those that hold anything.
    const auto group_of = [&](std::size_t v) {
      std::size_t group = 0;
      while ((group + 1) * i <= v * groups) ++group;  // edge g lies at g * i / groups
      return group;
    };
    std::map<std::size_t, std::pair<long double, long double>> merged;  // count and bins
    for (std::size_t v = 0; v < i; ++v) {
      if (counts[v] == 0) continue;
      auto& [count, bins] = merged[group_of(v)];
      count += static_cast<long double>(counts[v]);
      bins += 1;
    }
    std::vector<long double> candidate(i);
    long double reference_sum = 0, candidate_sum = 0;
    for (std::size_t v = 0; v < i; ++v) {
      if (counts[v] != 0) {
        const auto& [count, bins] = merged[group_of(v)];
        candidate[v] = count / bins;
      }
      reference_sum += reference[v];
      candidate_sum += candidate[v];
    }
    long double sum = 0;
    for (std::size_t v = 0; v < i; ++v) {
      const long double p = reference[v] / reference_sum, q = candidate[v] / candidate_sum;
      if (p > 0) sum += q > 0 ? p * std::log(p / q) : std::numeric_limits<long double>::infinity();
    }
    result.push_back(sum);
  }
  return result;
}

float integer_round_trip(float x, float amax, int low, int high) {
  if (amax <= std::ldexp(1.0F, -24)) return 0;
  // FP64 holds products of FP32 numbers; its quotients rounded to FP32 are those of FP32 division
  // (53 bits are at least 2 * 24 + 2).
  const auto factor = static_cast<float>(static_cast<double>(high) / static_cast<double>(amax));
  const auto scaled = static_cast<float>(static_cast<double>(x) * static_cast<double>(factor));
  double integer = std::floor(static_cast<double>(scaled));
  const double rest = static_cast<double>(scaled) - integer;
  if (rest > 0.5 || (rest == 0.5 && std::fmod(integer, 2) != 0)) integer += 1;
  if (integer < low) integer = low;
  if (integer > high) integer = high;
  return static_cast<float>(integer / static_cast<double>(factor));
}

std::vector<long double> squared_errors(const Counts& counts, const std::vector<float>& centres,
                                        std::size_t first, int low, int high) {
  std::vector<long double> sums;
  for (std::size_t i = first; i < centres.size(); ++i) {
    long double sum = 0;
    for (std::size_t v = 0; v < centres.size(); ++v) {
      const long double error =
          static_cast<long double>(integer_round_trip(centres[v], centres[i], low, high)) -
          static_cast<long double>(centres[v]);
      sum += error * error * static_cast<long double>(counts[v]);
    }
    sums.push_back(sum);
  }
  return sums;
}

namespace {

/// numerator / 2^shift to an integer.
Integer rounded_quotient(const Integer& numerator, int shift, Halves halves) {
  if (shift <= 0) return numerator * (Integer(1) << -shift);
  const Integer unit = Integer(1) << shift;
  Integer whole = numerator / unit,
          rest = numerator % unit;  // toward zero, the rest's sign as it is
  if (rest < 0) {
    whole -= 1;
    rest += unit;
  }
  const Integer twice = rest * 2;
  bool up = twice > unit;
  if (twice == unit) {
    if (halves == Halves::up) up = true;
    if (halves == Halves::even) up = whole % 2 != 0;
    if (halves == Halves::away) up = numerator > 0;
  }
  if (up) whole += 1;
  return whole;
}

}  // namespace

std::int64_t rounded_product(std::int32_t sum, double factor, Halves halves) {
  int exponent = 0;
  const double significand = std::frexp(factor, &exponent);
  const Integer numerator =
      Integer(sum) * Integer(static_cast<std::int64_t>(std::ldexp(significand, 53)));
  return static_cast<std::int64_t>(rounded_quotient(numerator, 53 - exponent, halves));
}

std::int64_t twice_rounded_product(std::int32_t sum, std::int32_t multiplier, int shift) {
  const Integer first = rounded_quotient(
      Integer(sum) * multiplier * (Integer(1) << (shift > 0 ? shift : 0)), 31, Halves::up);
  return static_cast<std::int64_t>(rounded_quotient(first, shift > 0 ? 0 : -shift, Halves::away));
}

}  // namespace guardbit::oracle
