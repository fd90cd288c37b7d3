#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "formats/format.hpp"
#include "formats/kernels/kernels.hpp"
#include "formats/rounding.hpp"

namespace guardbit::formats {

/// A conversion of x * 2^scale_exponent whose outcomes are counted. The format has a sign bit and
/// the rounding is the same on both sides of zero, so that outcomes depend on magnitudes alone.
struct CountedConversion {
  Format to;
  int scale_exponent = 0;
  Rounding rounding = Rounding::nearest_even;
  Overflow overflow = overflow_ieee;
};

/// The counts of ConversionSummary that need no look at single results.
struct OutcomeCounts {
  std::uint64_t elements = 0;
  std::uint64_t zeros_in = 0;
  std::uint64_t nans_in = 0;
  std::uint64_t infinities_in = 0;
  std::uint64_t zeros_made = 0;  ///< from numbers other than zero
  std::uint64_t subnormals_made = 0;
  std::uint64_t out_of_range = 0;     ///< finite numbers whose rounding lies past the largest
  std::uint64_t infinities_made = 0;  ///< of those
  std::uint64_t nans_made = 0;        ///< of those and of infinities
  std::uint64_t saturated = 0;        ///< of those and of infinities: finite numbers now

  friend bool operator==(const OutcomeCounts&, const OutcomeCounts&) = default;
};

/// Counts what any number of conversions would make of an array, without converting it. Rounding is
/// monotone, so each outcome belongs to an interval of FP32 magnitudes; the intervals' ends are
/// found with the reference, and counting is comparing.
class OutcomeCounting {
 public:
  /// `from` is a format that FP32 holds (kernels::widening). Throws Error for another one, and for
  /// conversions that CountedConversion excludes. `kernels` is one of kernels::available(), the
  /// widest if null.
  OutcomeCounting(const Format& from, std::span<const CountedConversion> conversions,
                  const kernels::Kernels* kernels = nullptr);

  /// The counts of each conversion over `count` codes in containers. threads 0: all.
  std::vector<OutcomeCounts> operator()(std::span<const std::byte> codes, std::size_t count,
                                        int threads = 0) const;

 private:
  /// Where a conversion's thresholds begin, and what becomes of what is out of range.
  struct Case {
    std::size_t first_threshold = 0;
    bool overflow_is_nan = false, overflow_is_infinity = false;
    bool infinity_is_nan = false, infinity_stays = false;
  };

  void count_range(std::span<const std::byte> codes, std::size_t begin, std::size_t end,
                   std::vector<std::uint64_t>& reached) const;

  Format from_;
  const kernels::Kernels* kernels_;
  std::optional<kernels::Widening> widening_;
  std::vector<Case> cases_;
  std::vector<std::uint32_t> thresholds_;  ///< of zero, infinity and NaN, then three for each case
};

}  // namespace guardbit::formats
