#pragma once

#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

#include "emulator/operators/operator_tensor.hpp"

// What operators of rows, images and volumes share: tensors whose last one, two or three dimensions
// are of space.
namespace guardbit::emulator::operators {

/// A number for each dimension of space; those that a tensor lacks stay what they are.
struct Space {
  std::int64_t depth = 1, rows = 1, columns = 1;

  std::int64_t count() const { return depth * rows * columns; }
  std::int64_t place(std::int64_t d, std::int64_t r, std::int64_t c) const {
    return (d * rows + r) * columns + c;
  }
  bool operator==(const Space&) const = default;
};

/// All images of a tensor, each channel for itself.
struct Images {
  std::int64_t count = 1;
  Space size;

  Images(const Dimensions& shape, int dimensions);
  /// of the first element of an image
  std::int64_t begin(std::int64_t image) const { return image * size.count(); }
};

/// The same batch and channels with another size.
Dimensions resized(const Dimensions& shape, const Space& size, int dimensions);

/// Strides for a result of that shape: channels of a pixel lie together where PyTorch says so of
/// the input.
Dimensions stride_like(const Tensor& input, const Dimensions& shape);

inline std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

/// Calls it with a number of the type in which the GPU computes with such tensors: double for FP64,
/// else float.
template <class Function>
auto in_numbers_of(const Tensor& tensor, const Function& function) {
  return tensor.type == formats::fp64 ? function(double{}) : function(float{});
}

/// A number rounded to the tensor's type and back.
inline float rounded(const formats::Format& type, float number) { return rounded_to(type, number); }
inline double rounded(const formats::Format&, double number) { return number; }

Tensor tensor_of(const formats::Format& type, const Dimensions& shape, Dimensions stride,
                 std::span<const float> numbers);
Tensor tensor_of(const formats::Format& type, const Dimensions& shape, Dimensions stride,
                 std::span<const double> numbers);

/// The same elements with other strides.
Tensor relaid(const Tensor& tensor, Dimensions stride);
/// Copies of elements, bit for bit; zero where the place is negative.
Tensor copies(const Tensor& from, const Dimensions& shape, Dimensions stride,
              std::span<const std::int64_t> places);

}  // namespace guardbit::emulator::operators
