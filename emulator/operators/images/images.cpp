#include "emulator/operators/images/images.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "emulator/operators/memory_order.hpp"

namespace guardbit::emulator::operators {

Images::Images(const Dimensions& shape, int dimensions) {
  if (std::ssize(shape) < dimensions) throw UnknownShape{"fewer dimensions than those of space"};
  const auto own = static_cast<std::size_t>(dimensions);
  size.columns = shape.back();
  if (dimensions > 1) size.rows = shape[shape.size() - 2];
  if (dimensions > 2) size.depth = shape[shape.size() - 3];
  for (std::size_t d = 0; d + own < shape.size(); ++d) count *= shape[d];
}

Dimensions resized(const Dimensions& shape, const Space& size, int dimensions) {
  Dimensions other = shape;
  other.back() = size.columns;
  if (dimensions > 1) other[other.size() - 2] = size.rows;
  if (dimensions > 2) other[other.size() - 3] = size.depth;
  return other;
}

Dimensions stride_like(const Tensor& input, const Dimensions& shape) {
  return says_channels_last(input) ? channels_last_stride(shape) : contiguous_stride(shape);
}

Tensor tensor_of(const formats::Format& type, const Dimensions& shape, Dimensions stride,
                 std::span<const float> numbers) {
  return tensor_of_numbers(type, shape, std::move(stride), numbers);
}
Tensor tensor_of(const formats::Format&, const Dimensions& shape, Dimensions stride,
                 std::span<const double> numbers) {
  Tensor tensor = tensor_of_doubles(shape, numbers);
  tensor.stride = std::move(stride);
  return tensor;
}

Tensor relaid(const Tensor& tensor, Dimensions stride) {
  Tensor other = tensor;
  other.stride = std::move(stride);
  other.offset = 0;
  return other;
}

Tensor copies(const Tensor& from, const Dimensions& shape, Dimensions stride,
              std::span<const std::int64_t> places) {
  Tensor tensor = uninitialised_tensor(from.type, shape);
  tensor.stride = std::move(stride);
  const auto width = static_cast<std::size_t>(from.element_bytes());
  std::byte* to = writable_bytes(tensor).data();
  for (const std::int64_t place : places) {
    if (place < 0)
      std::memset(to, 0, width);
    else
      std::memcpy(to, from.bytes.data() + index(place) * width, width);
    to += width;
  }
  return tensor;
}

}  // namespace guardbit::emulator::operators
