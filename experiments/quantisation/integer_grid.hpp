#pragma once

#include <cstdint>
#include <string_view>

namespace guardbit::experiments {

/// In which FP32 operations a number becomes an integer and comes back. They differ in the last
/// place, and so at ties by one integer.
enum class IntegerArithmetic : std::uint8_t {
  /// x * (bound / amax); q / (bound / amax)
  modelopt,
  /// x * (1 / s), rounded, then the zero point added; (q - z) * s
  pytorch,
  /// x / s, rounded, then the zero point added; (q - z) * s
  divide,
};
IntegerArithmetic require_arithmetic(std::string_view name, std::string_view where);
std::string_view name_of(IntegerArithmetic arithmetic);

/// The integers from `low` to `high` as numbers: q stands for (q - zero) * scale.
struct IntegerGrid {
  IntegerArithmetic arithmetic = IntegerArithmetic::divide;
  /// What x is multiplied with (modelopt: bound / amax, 0 where amax is at most 2^-24), or the
  /// scale s (the others).
  float factor = 1;
  std::int32_t zero = 0, low = -127, high = 127;

  /// x over the scale, in FP32.
  float scaled(float x) const;
  /// Before it is clamped: the nearest even integer of x over the scale, plus the zero point.
  float unclamped(float x) const;
  std::int32_t quantised(float x) const;
  float value(std::int32_t q) const;
  float fake_quantised(float x) const { return value(quantised(x)); }
  /// The number that the integer 1 stands for, 1 where everything is 0.
  float scale() const;

  friend bool operator==(const IntegerGrid&, const IntegerGrid&) = default;
};

/// Symmetric, narrow range: [-bound, bound] or [0, bound] for [-amax, amax].
IntegerGrid modelopt_grid(float amax, int bits, bool is_unsigned);
IntegerGrid divide_grid(float amax, int bits, bool is_unsigned);
/// PyTorch's observers: the whole range, s = amax / ((high - low) / 2) and at least 2^-23; without
/// a sign the zero point lies in the middle.
IntegerGrid pytorch_grid(float amax, int bits, bool is_unsigned);
/// PyTorch's affine scheme: [least, largest], widened to hold 0, for all integers; s at least
/// 2^-23. `arithmetic` is pytorch or divide.
IntegerGrid affine_grid(float least, float largest, int bits, bool is_unsigned,
                        IntegerArithmetic arithmetic);

/// What passes a gradient through rounding.
enum class StraightThrough : std::uint8_t {
  /// where the rounded integer is in range
  pytorch,
  /// where the number itself is: |x| <= amax
  modelopt,
  /// everywhere (ModelOpt's pass_through_bwd)
  pass_through,
  /// as pytorch, and the scale and the zero point learn, too
  learned_scale,
};
StraightThrough require_straight_through(std::string_view name, std::string_view where);

/// d(fake_quantised(x)) by x, by the scale and by the zero point.
struct FakeQuantisationGradient {
  float x = 0, scale = 0, zero = 0;
};
/// Derivatives by the scale and the zero point are 0 except for learned_scale. There inside the
/// range the scale's is (value - x) / s, outside low - zero or high - zero, and the zero point's -s
/// outside: PyTorch's fake_quantize_learnable_per_tensor_affine (torch 2.15), which adds the zero
/// point before it rounds here, but afterwards in the value itself: at ties under an odd zero point
/// they differ. The learned step size of arXiv 1902.08153 is this times learned_step_factor. `amax`
/// is that of the calibration, for modelopt.
FakeQuantisationGradient gradient_of(StraightThrough variant, const IntegerGrid& grid, float x,
                                     float amax = 0);

/// 1 / sqrt(numbers * high): what arXiv 1902.08153 multiplies the scale's gradient with (recalled).
float learned_step_factor(std::size_t numbers, const IntegerGrid& grid);

}  // namespace guardbit::experiments
