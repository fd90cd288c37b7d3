#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "formats/format.hpp"

// Functions that results go through, element by element, as libraries and compilers compute them.
namespace guardbit::emulator {

/// What a result goes through, after all additions and before it is rounded to D's format.
enum class Activation : std::uint8_t {
  none,
  /// the greater of it and +0; a NaN stays one
  relu,
  /// (x / 2) (1 + erf(x / sqrt(2))) by the erff of CUDA 13: PyTorch's own kernels
  gelu,
  /// the same by the erff of CUDA 12.0, which Triton 3.6 links: torch.compile
  gelu_cuda12,
  /// (x / 2) erfc(-x / sqrt(2)) by polynomials, nothing fused: XLA. Each operation outside of erfc,
  /// and x first, is rounded to D's format.
  gelu_erfc,
  /// (x / 2) (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))
  gelu_tanh,
  /// x / (1 + exp(-x))
  silu,
};
constexpr auto words(Activation) {
  return std::array{"none", "relu", "gelu", "gelu_cuda12", "gelu_erfc", "gelu_tanh", "silu"};
}

/// True of the formats of D to which its steps are rounded: FP32, FP16, BF16.
bool has_steps_of_gelu_erfc(const formats::Format& result);

/// Each number in place. `result` is D's format.
void activate(Activation activation, const formats::Format& result, std::span<float> numbers);

/// The function itself, as far as the host's doubles have it. Not a model: no bits rest on it.
double activated_in_doubles(Activation activation, double x);

/// Neither none nor ReLU: hardly a result is x or 0.
constexpr bool is_smooth(Activation activation) { return activation > Activation::relu; }

/// Every form computes these numbers and greater ones as x itself.
double least_unchanged(Activation activation);

/// Of a smooth one, which falls up to there and rises from there on.
double place_of_minimum(Activation activation);

/// What computes the same function in other ways, with this one as the first.
std::vector<Activation> forms_of(Activation activation);
/// The first of these forms in the order of the enumeration.
Activation function_of(Activation activation);

}  // namespace guardbit::emulator
