#pragma once

#include <array>
#include <cstdint>

namespace guardbit::experiments {

/// How an INT32 sum is multiplied with a real factor and rounded to an integer.
enum class RequantisationRule : std::uint8_t {
  /// gemmlowp, and TFLite unless built otherwise: the 32-bit doubled high product with a multiplier
  /// of 31 bits, ties upward, then a rounding shift right, ties away from zero: rounded twice.
  double_rounding,
  /// TFLite with TFLITE_SINGLE_ROUNDING: the 64-bit product and one shift, ties upward.
  single_rounding,
  /// The multiplier is FP32: the sum to FP32, times it, each to nearest even, then the nearest even
  /// integer (FBGEMM, PyTorch, CUTLASS's epilogues).
  fp32,
  /// The sum times the FP32 factor without any error, to the nearest even integer.
  exact,
};
constexpr auto words(RequantisationRule) {
  return std::array{"double_rounding", "single_rounding", "fp32", "exact"};
}

/// factor = multiplier * 2^(shift - 31), multiplier in [2^30, 2^31), rounded to nearest, ties away
/// from zero (std::round, TFLite's QuantizeMultiplier); 0 for a factor below 2^-32.
struct FixedPointFactor {
  std::int32_t multiplier = 0;
  int shift = 0;
  friend bool operator==(const FixedPointFactor&, const FixedPointFactor&) = default;
};
/// The factor is above 0 and below 2^30.
FixedPointFactor fixed_point(double factor);

/// A sum's integer under a rule, before the output's zero point.
class Requantisation {
 public:
  Requantisation(RequantisationRule rule, float factor);

  std::int64_t operator()(std::int32_t sum) const;
  /// Plus the zero point, clamped.
  std::int32_t operator()(std::int32_t sum, std::int32_t zero, std::int32_t low,
                          std::int32_t high) const;

 private:
  RequantisationRule rule_;
  float factor_;
  FixedPointFactor fixed_;
};

}  // namespace guardbit::experiments
