#pragma once

#include <cstdint>
#include <optional>

namespace guardbit::formats {

/// What quantising did. An element is out of range when it is infinite or the rounding of its
/// quotient by the block's unit (scale times tensor scale, what an element of 1 stands for), had
/// the exponent no limit, lies past the element format's largest number. The sums behind errors and
/// noise are of FP64, in an order that does not depend on the threads.
struct BlockSummary {
  std::uint64_t blocks = 0;
  std::uint64_t elements = 0;
  std::uint64_t nans_in = 0;
  std::uint64_t infinities_in = 0;
  /// from numbers other than zero
  std::uint64_t zeros_made = 0;
  /// of those, in blocks whose scale is zero
  std::uint64_t under_no_scale = 0;
  /// from finite numbers
  std::uint64_t infinities_made = 0;
  /// from anything but NaN
  std::uint64_t nans_made = 0;
  /// out of range, and a finite number now
  std::uint64_t saturated = 0;
  /// that stand for another number now, NaN not counted
  std::uint64_t inexact = 0;
  /// finite numbers that still are: what signal and noise hold
  std::uint64_t compared = 0;
  /// sum of their squares
  double signal = 0;
  /// sum of the squares of their errors
  double noise = 0;
  /// of the compared, those in blocks with a unit above zero
  std::uint64_t measured = 0;
  /// of the measured, in their blocks' units
  double max_error = 0;
  double error_sum = 0;

  double mean_error() const {
    return measured == 0 ? 0 : error_sum / static_cast<double>(measured);
  }
  /// Signal over noise in decibels; nothing where either is zero.
  std::optional<double> signal_to_noise() const;

  friend bool operator==(const BlockSummary&, const BlockSummary&) = default;
};

}  // namespace guardbit::formats
