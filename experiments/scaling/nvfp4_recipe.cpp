#include "experiments/scaling/nvfp4_recipe.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cmath>

#include "emulator/gemm/scalar.hpp"

namespace guardbit::experiments {

namespace {

namespace scalar = emulator::scalar;

constexpr std::size_t block_size = 16;
using Block = std::array<double, block_size>;

/// A block as its scale's elements, decoded.
struct Coded {
  Block values{};
  double noise = 0;
};

/// The neighbours of y on E2M1's grid, |y| <= 6.
struct Neighbours {
  double low, high;
};
Neighbours neighbours_of(double y) {
  const double m = std::abs(y);
  const double unit = m < 2 ? 0.5 : m < 4 ? 1 : 2;
  return {std::floor(y / unit) * unit, std::ceil(y / unit) * unit};
}

double stochastically(double y, formats::RandomBits bits) {
  const auto value = formats::decode(formats::fp64, std::bit_cast<std::uint64_t>(y));
  return scalar::decoded(formats::e2m1,
                         formats::encode(formats::e2m1, value, formats::Rounding::stochastic,
                                         formats::overflow_saturate, bits));
}

class Quantiser {
 public:
  Quantiser(const Nvfp4Recipe& recipe, const Draws& rounding, float amax, Nvfp4Outcome& outcome)
      : recipe_(recipe), rounding_(rounding), outcome_(outcome) {
    scale_ = amax == 0 ? 1 : recipe.largest_scale * 6 / amax;
  }

  Block operator()(const Block& x, std::size_t index) {
    float amax = 0;
    for (const double v : x) amax = std::max(amax, static_cast<float>(std::abs(v)));
    Coded best = coded(x, scale_of(amax, 6), index);
    if (recipe_.four_over_six) {
      const Coded other = coded(x, scale_of(amax, 4), index);
      if (other.noise < best.noise) best = other;
    }
    outcome_.block_noise.push_back(best.noise);
    return best.values;
  }

 private:
  /// What an element of 1 stands for when amax goes to `target`.
  double scale_of(float amax, float target) const {
    const float wanted = std::min(amax * (scale_ * (1 / target)), 448.0F);
    return scalar::rounded(formats::e4m3, static_cast<double>(wanted)) /
           static_cast<double>(scale_);
  }

  Coded coded(const Block& x, double scale, std::size_t index) {
    Coded result;
    for (std::size_t i = 0; i < block_size; ++i) {
      const double y = scale == 0 ? 0 : x[i] / scale, clamped = std::clamp(y, -6.0, 6.0);
      if (recipe_.stochastic) {
        result.values[i] = scale * stochastically(clamped, rounding_.bits(index * block_size + i));
        expect(x[i], clamped, scale, result.values[i]);
      } else {
        result.values[i] = scale * scalar::rounded(formats::e2m1, clamped);
      }
      const double error = result.values[i] - x[i];
      result.noise += error * error;
    }
    return result;
  }

  /// x lies between two elements; the upper one is taken with the probability of its part of the
  /// way.
  void expect(double x, double y, double scale, double got) {
    const Neighbours n = neighbours_of(y);
    const double down = x - n.low * scale, up = n.high * scale - x;
    if (n.low == n.high || down < 0 || up < 0) {  // exact, or clamped
      outcome_.expected += std::min(down * down, up * up);
      return;
    }
    const double p = down / (down + up), mean = down * up;
    outcome_.expected += mean;
    outcome_.expected_variance += p * (up * up - mean) * (up * up - mean) +
                                  (1 - p) * (down * down - mean) * (down * down - mean);
    outcome_.signed_sum += got - x;
    outcome_.signed_variance += mean;
  }

  const Nvfp4Recipe& recipe_;
  const Draws& rounding_;
  Nvfp4Outcome& outcome_;
  float scale_ = 1;
};

}  // namespace

void hadamard_16(std::span<double, 16> x) {
  for (std::size_t half = 1; half < block_size; half *= 2) {
    for (std::size_t i = 0; i < block_size; ++i) {
      if ((i & half) != 0) continue;
      const double sum = x[i] + x[i + half], difference = x[i] - x[i + half];
      x[i] = sum;
      x[i + half] = difference;
    }
  }
  for (double& v : x) v /= 4;
}

Nvfp4Outcome nvfp4_round_trip(std::span<const float> numbers, const Nvfp4Recipe& recipe,
                              const Draws& signs, const Draws& rounding) {
  assert(numbers.size() % block_size == 0);
  Nvfp4Outcome outcome;
  std::vector<Block> blocks(numbers.size() / block_size);
  Block sign{};
  for (std::size_t i = 0; i < block_size; ++i) sign[i] = (signs.word(i) & 1U) == 0 ? 1 : -1;
  float amax = 0;
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    Block& x = blocks[b];
    for (std::size_t i = 0; i < block_size; ++i) {
      x[i] = static_cast<double>(numbers[b * block_size + i]);
      if (recipe.hadamard) x[i] *= sign[i];
    }
    if (recipe.hadamard) hadamard_16(x);
    for (double& v : x) {
      v = static_cast<double>(static_cast<float>(v));
      amax = std::max(amax, static_cast<float>(std::abs(v)));
      outcome.transformed_squares += v * v;
    }
  }
  Quantiser quantise(recipe, rounding, amax, outcome);
  outcome.numbers.reserve(numbers.size());
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    Block y = quantise(blocks[b], b);
    if (recipe.hadamard) {
      hadamard_16(y);
      for (std::size_t i = 0; i < block_size; ++i) y[i] *= sign[i];
    }
    outcome.numbers.insert(outcome.numbers.end(), y.begin(), y.end());
  }
  return outcome;
}

}  // namespace guardbit::experiments
