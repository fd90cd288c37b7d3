#include "experiments/quantisation/integer_grid.hpp"

#include <algorithm>
#include <cmath>

namespace guardbit::experiments {

namespace {

constexpr float least_scale = 0x1p-23F;

IntegerGrid narrow(IntegerArithmetic arithmetic, int bits, bool is_unsigned) {
  IntegerGrid grid;
  grid.arithmetic = arithmetic;
  grid.high = (1 << (is_unsigned ? bits : bits - 1)) - 1;
  grid.low = is_unsigned ? 0 : -grid.high;
  return grid;
}

IntegerGrid whole(IntegerArithmetic arithmetic, int bits, bool is_unsigned) {
  IntegerGrid grid = narrow(arithmetic, bits, is_unsigned);
  if (!is_unsigned) --grid.low;
  return grid;
}

}  // namespace

float IntegerGrid::scaled(float x) const {
  switch (arithmetic) {
    case IntegerArithmetic::modelopt: return x * factor;
    case IntegerArithmetic::pytorch: {
      const float inverse = 1 / factor;
      return x * inverse;
    }
    case IntegerArithmetic::divide: break;
  }
  return x / factor;
}

float IntegerGrid::unclamped(float x) const {
  return std::nearbyint(scaled(x)) + static_cast<float>(zero);
}

std::int32_t IntegerGrid::quantised(float x) const {
  const float q = unclamped(x);
  return static_cast<std::int32_t>(
      std::clamp(q, static_cast<float>(low), static_cast<float>(high)));
}

float IntegerGrid::value(std::int32_t q) const {
  const auto units = static_cast<float>(q - zero);
  if (arithmetic != IntegerArithmetic::modelopt) return units * factor;
  return factor == 0 ? 0 : units / factor;
}

float IntegerGrid::scale() const {
  if (arithmetic != IntegerArithmetic::modelopt) return factor;
  return factor == 0 ? 1 : 1 / factor;
}

IntegerGrid modelopt_grid(float amax, int bits, bool is_unsigned) {
  IntegerGrid grid = narrow(IntegerArithmetic::modelopt, bits, is_unsigned);
  grid.factor = amax <= 0x1p-24F ? 0 : static_cast<float>(grid.high) / amax;
  return grid;
}

IntegerGrid divide_grid(float amax, int bits, bool is_unsigned) {
  IntegerGrid grid = narrow(IntegerArithmetic::divide, bits, is_unsigned);
  const float scale = amax / static_cast<float>(grid.high);
  grid.factor = scale > 0 ? scale : 1;
  return grid;
}

IntegerGrid pytorch_grid(float amax, int bits, bool is_unsigned) {
  IntegerGrid grid = whole(IntegerArithmetic::pytorch, bits, is_unsigned);
  grid.factor = std::max(amax / (static_cast<float>(grid.high - grid.low) / 2), least_scale);
  if (is_unsigned) grid.zero = (grid.high + 1) / 2;
  return grid;
}

IntegerGrid affine_grid(float least, float largest, int bits, bool is_unsigned,
                        IntegerArithmetic arithmetic) {
  IntegerGrid grid = whole(arithmetic, bits, is_unsigned);
  const float low = std::min(least, 0.0F), high = std::max(largest, 0.0F);
  grid.factor = std::max((high - low) / static_cast<float>(grid.high - grid.low), least_scale);
  const float zero = static_cast<float>(grid.low) - std::nearbyint(low / grid.factor);
  grid.zero = static_cast<std::int32_t>(
      std::clamp(zero, static_cast<float>(grid.low), static_cast<float>(grid.high)));
  return grid;
}

FakeQuantisationGradient gradient_of(StraightThrough variant, const IntegerGrid& grid, float x,
                                     float amax) {
  const auto low = static_cast<float>(grid.low), high = static_cast<float>(grid.high);
  const float scale = grid.scale();
  switch (variant) {
    case StraightThrough::pass_through: return {1, 0, 0};
    case StraightThrough::modelopt: return {std::fabs(x) <= amax ? 1.0F : 0.0F, 0, 0};
    case StraightThrough::pytorch: {
      const float q = grid.unclamped(x);
      return {q >= low && q <= high ? 1.0F : 0.0F, 0, 0};
    }
    case StraightThrough::learned_scale: break;
  }
  // Here torch adds the zero point before it rounds, unlike in the value itself.
  const auto zero = static_cast<float>(grid.zero);
  const float together = std::nearbyint(grid.scaled(x) + zero);
  if (together < low) return {0, low - zero, -scale};
  if (together > high) return {0, high - zero, -scale};
  return {1, ((together - zero) * scale - x) / scale, 0};
}

float learned_step_factor(std::size_t numbers, const IntegerGrid& grid) {
  return 1 / std::sqrt(static_cast<float>(numbers) * static_cast<float>(grid.high));
}

}  // namespace guardbit::experiments
