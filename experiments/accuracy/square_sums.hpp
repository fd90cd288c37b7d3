#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "experiments/accuracy/exact_sum.hpp"

// Exact sums of squares, for errors of tensors.
namespace guardbit::experiments {

/// Sums of squares of doubles, exactly: integers of 106 bits, added up by the doubles' exponents.
class SquareSums {
 public:
  /// x is zero or normal: numbers of FP32 and differences of such with what comes back are.
  void add(double x) {
    const std::uint64_t bits = std::bit_cast<std::uint64_t>(x);
    const std::uint64_t exponent = (bits >> 52) & 0x7FFU;
    if (exponent == 0) return;
    const std::uint64_t one = std::uint64_t{1} << 52;
    const std::uint64_t significand = (bits & (one - 1)) | one;
    by_exponent_[exponent].add(formats::uint128{significand} * significand);
  }

  void add_to(ExactSum& sum) const {
    for (std::size_t exponent = 0; exponent < by_exponent_.size(); ++exponent) {
      if (by_exponent_[exponent] != Sum192{})
        sum.add(by_exponent_[exponent], 2 * (static_cast<int>(exponent) - 1075));
    }
  }

 private:
  std::vector<Sum192> by_exponent_ = std::vector<Sum192>(2048);
};

}  // namespace guardbit::experiments
