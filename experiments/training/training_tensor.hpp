#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "formats/format.hpp"
#include "formats/format_catalogue.hpp"
#include "formats/tensors/tensor.hpp"

namespace guardbit::experiments::training {

using formats::Format;
using Dimensions = std::vector<std::int64_t>;
using Values = std::vector<float>;

/// Numbers of a format, held in FP32, row-major. As a matrix: all dimensions but the last are rows.
struct Tensor {
  Dimensions shape;
  Format format = formats::fp32;
  Values values;

  std::int64_t size() const { return static_cast<std::int64_t>(values.size()); }
  std::int64_t columns() const { return shape.empty() ? 1 : shape.back(); }
  std::int64_t rows() const { return columns() == 0 ? 0 : size() / columns(); }
  float& operator[](std::int64_t i) { return values[static_cast<std::size_t>(i)]; }
  float operator[](std::int64_t i) const { return values[static_cast<std::size_t>(i)]; }
};

inline Tensor zeros(Dimensions shape, const Format& format = formats::fp32) {
  Tensor t{std::move(shape), format, {}};
  t.values.resize(static_cast<std::size_t>(formats::element_count(t.shape)));
  return t;
}

/// What is trained: numbers in the format that weights are kept in, and the gradient in FP32 (in
/// the weights' format where that is narrower).
struct Parameter {
  std::string name;
  Tensor value;
  Tensor gradient;
};

}  // namespace guardbit::experiments::training
