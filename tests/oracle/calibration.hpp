#pragma once

#include <cstdint>
#include <vector>

/// Calibrators of integer quantisation, word for word from their description, slow and sharing
/// nothing with the project: shares and divergences in long double.
namespace guardbit::oracle {

using Counts = std::vector<std::int64_t>;

/// The first bin at which at least that share of all counts is reached, counted exactly.
/// `percent_hundredths`: 9999 for 99.99 %.
std::size_t percentile_bin(const Counts& counts, std::int64_t percent_hundredths);

/// Divergences for i = first, first + 1, ..., the number of bins. `groups` of equal width;
/// `zero_bin`: the second count stands in for the first, too.
std::vector<long double> divergences(Counts counts, std::size_t first, std::size_t groups,
                                     bool zero_bin);

/// x to an integer of that bound and back in FP32, the divisions and products rounded one by one.
float integer_round_trip(float x, float amax, int low, int high);

/// Sums of count times squared error of the centres, each quantised with amax = centre i, for
/// i = first, first + 1, ...
std::vector<long double> squared_errors(const Counts& counts, const std::vector<float>& centres,
                                        std::size_t first, int low, int high);

/// sum * factor rounded to an integer: halves to even, upward, or away from zero.
enum class Halves { even, up, away };
std::int64_t rounded_product(std::int32_t sum, double factor, Halves halves);
/// gemmlowp's two roundings of sum * multiplier * 2^(shift - 31).
std::int64_t twice_rounded_product(std::int32_t sum, std::int32_t multiplier, int shift);

}  // namespace guardbit::oracle
