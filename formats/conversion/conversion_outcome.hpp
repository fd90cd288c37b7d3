#pragma once

#include <cstdint>
#include <optional>

#include "formats/conversion/conversion.hpp"
#include "formats/conversion/kernels/conversion_kernels.hpp"

// What conversions did, element by element and in sum: what ConversionSummary is made of.
namespace guardbit::formats {

/// What happened to one element.
struct Outcome {
  std::uint64_t code = 0;
  /// of ulp_error, when compared
  std::uint64_t error = 0;
  bool nan_in = false;
  bool zero_made = false;
  bool infinity_made = false;
  bool nan_made = false;
  bool saturated = false;
  bool subnormal_made = false;
  bool inexact = false;
  bool compared = false;
};

/// Sums of outcomes in integers, so that their order does not matter.
class Tally {
 public:
  void add(const Outcome& outcome, std::uint64_t times);
  void add(const Tally& other);
  /// What a kernel counted among so many elements.
  void add(const kernels::LaneCounts& counts, std::uint64_t elements);

  std::uint64_t elements() const { return counts_.elements; }
  ConversionSummary summary() const;

 private:
  ConversionSummary counts_;
  uint128 error_sum_ = 0;
  std::uint64_t max_error_ = 0;
};

/// The rule for one element of a conversion: every other way to convert gives the same. `options`
/// must outlive it.
class ElementConversion {
 public:
  /// `from` is the format of the elements, where they are one's.
  ElementConversion(const std::optional<Format>& from, const Format& to,
                    const ConversionOptions& options)
      : from_(from), to_(to), options_(options) {}

  Outcome operator()(const Value& value, RandomBits random) const;

  /// Of the element with that index.
  RandomBits random(std::size_t index) const;

  /// Is a number to be rounded one of those that are taken past the destination's largest?
  bool is_out_of_range(const Unrounded& x, Rounding rounding, RandomBits random) const;

 private:
  bool rounds_in_range(const Unrounded& x, RandomBits random, Outcome& outcome) const;
  void describe(const Unrounded& x, const Value& result, RandomBits random, Outcome& outcome) const;

  std::optional<Format> from_;
  Format to_;
  const ConversionOptions& options_;
};

}  // namespace guardbit::formats
