#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "experiments/harness/random_numbers.hpp"

namespace guardbit::experiments {

/// What recipes add to NVFP4 (blocks of 16, as Transformer Engine scales them).
struct Nvfp4Recipe {
  /// random signs and a 16-point Hadamard transform, taken back after
  bool hadamard = false;
  /// elements are rounded stochastically, by 32 bits
  bool stochastic = false;
  /// the block's largest goes to 4 or to 6, whichever errs less; 6 if equal
  bool four_over_six = false;
  /// of the block with the tensor's amax; 4-over-6 may use 256
  float largest_scale = 448;
};

struct Nvfp4Outcome {
  /// what comes back
  std::vector<double> numbers;
  /// sum of squared errors of each block
  std::vector<double> block_noise;
  /// Of stochastic rounding: the sum of squared errors that is expected and its variance, and the
  /// signed errors' sum and the variance expected of that, without clamped elements.
  double expected = 0, expected_variance = 0, signed_sum = 0, signed_variance = 0;
  /// sum of squares of what was quantised
  double transformed_squares = 0;
};

/// Quantises and decodes numbers, a multiple of 16 of them.
Nvfp4Outcome nvfp4_round_trip(std::span<const float> numbers, const Nvfp4Recipe& recipe,
                              const Draws& signs, const Draws& rounding);

/// The orthonormal Hadamard transform of 16 numbers, its own inverse.
void hadamard_16(std::span<double, 16> x);

}  // namespace guardbit::experiments
