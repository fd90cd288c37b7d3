#pragma once

#include <array>
#include <optional>

#include "emulator/operators/images/images.hpp"

// Interpolation of rows, images and volumes between their elements.
namespace guardbit::emulator::operators {

/// Scales are of the result to the input; nothing: by the sizes.
struct Scales {
  std::optional<double> depth, rows, columns;
};
/// How places of a result are mapped to those of the input.
struct Interpolation {
  /// of space: 1 to 3
  int dimensions = 2;
  Space size = {};
  Scales scales = {};
  bool aligns_corners = false;
  /// the nearest of the elements' centres: nearest-exact
  bool takes_centres = false;
};

Tensor interpolate_nearest(const Tensor& input, const Interpolation& rule);
/// Each element adds the gradients of a box of results, in order. `rule.size` is the gradient's.
Tensor interpolate_nearest_gradient(const Tensor& gradient, const Dimensions& input_shape,
                                    const Interpolation& rule);
/// Linear, bilinear and trilinear.
Tensor interpolate_linear(const Tensor& input, const Interpolation& rule);
/// Of images.
Tensor interpolate_cubic(const Tensor& input, const Interpolation& rule);
/// Of images, with weights of all elements that a result's width covers.
Tensor interpolate_antialiased(const Tensor& input, const Interpolation& rule, bool is_cubic);

/// Weights of four neighbours of a place by its distance to the second one: the cubic convolution
/// with A = -0.75, as nvcc fuses it.
template <class Number>
std::array<Number, 4> cubic_weights(Number distance);
/// The sum of four products.
template <class Number>
Number weighted(const std::array<Number, 4>& numbers, const std::array<Number, 4>& weights);

/// Input elements in a step of the result.
template <class Number>
Number step_of(std::int64_t input, std::int64_t output, bool aligns_corners,
               const std::optional<double>& scale) {
  if (aligns_corners)
    return output > 1 ? static_cast<Number>(input - 1) / static_cast<Number>(output - 1) : 0;
  if (scale && *scale > 0) return static_cast<Number>(1.0 / *scale);
  return static_cast<Number>(input) / static_cast<Number>(output);
}

}  // namespace guardbit::emulator::operators
