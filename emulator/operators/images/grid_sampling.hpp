#pragma once

#include "emulator/operators/images/images.hpp"

// Elements of images and volumes at places that a grid names.
namespace guardbit::emulator::operators {

enum class Sampling : std::int64_t { linear, nearest, cubic };
enum class Outside : std::int64_t { zeros, border, reflection };
struct GridRule {
  Sampling sampling = Sampling::linear;
  Outside outside = Outside::zeros;
  bool aligns_corners = false;
};
/// `grid` holds for each element of the result a column, a row and, of volumes, a depth; -1 and 1
/// are the ends of the image.
Tensor grid_sample(const Tensor& input, const Tensor& grid, const GridRule& rule, int dimensions);

}  // namespace guardbit::emulator::operators
