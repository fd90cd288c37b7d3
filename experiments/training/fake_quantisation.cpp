#include "experiments/training/fake_quantisation.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "experiments/training/training_arithmetic.hpp"

namespace guardbit::experiments::training {

void RunningRange::observe(const Values& values, float share) {
  constexpr float most = std::numeric_limits<float>::max();
  float low = most, high = -most;
  for (const float x : values) {
    if (!is_finite(x)) continue;
    low = std::min(low, x);
    high = std::max(high, x);
  }
  if (low > high) return;
  least = has_begun ? least + share * (low - least) : low;
  largest = has_begun ? largest + share * (high - largest) : high;
  has_begun = true;
}

IntegerGrid weight_grid(float amax, int bits) {
  IntegerGrid grid = divide_grid(amax, bits, false);
  grid.arithmetic = IntegerArithmetic::pytorch;
  return grid;
}

IntegerGrid activation_grid(const RunningRange& range, int bits) {
  return affine_grid(range.least, range.largest, bits, true, IntegerArithmetic::pytorch);
}

}  // namespace guardbit::experiments::training
