#include "emulator/operators/memory_order.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

namespace guardbit::emulator::operators {

bool has_no_gaps(const Tensor& tensor) {
  std::vector<std::pair<std::int64_t, std::int64_t>> dimensions;
  for (std::size_t d = 0; d < tensor.shape.size(); ++d) {
    if (tensor.shape[d] != 1) dimensions.emplace_back(tensor.stride[d], tensor.shape[d]);
  }
  std::ranges::sort(dimensions);
  std::int64_t next = 1;
  for (const auto& [stride, size] : dimensions) {
    if (stride != next) return false;
    next *= size;
  }
  return true;
}

namespace {
/// The dimensions of images or volumes from the fastest to the slowest where channels lie together;
/// none of other tensors.
std::vector<std::size_t> order_of_channels_last(const Dimensions& shape) {
  if (shape.size() != 4 && shape.size() != 5) return {};
  std::vector<std::size_t> order = {1};
  for (std::size_t d = shape.size(); d-- > 2;) order.push_back(d);
  order.push_back(0);
  return order;
}
}  // namespace

bool says_channels_last(const Tensor& tensor) {
  const std::vector<std::size_t> order = order_of_channels_last(tensor.shape);
  if (order.empty() || tensor.stride[1] == 0) return false;
  std::int64_t least = 0;
  for (const std::size_t d : order) {
    if (tensor.shape[d] == 0 || tensor.stride[d] < least || (d == 0 && least == tensor.stride[1]))
      return false;
    least = tensor.stride[d] * tensor.shape[d];
  }
  return true;
}

bool is_contiguous_channels_last(const Tensor& tensor) {
  const std::vector<std::size_t> order = order_of_channels_last(tensor.shape);
  std::int64_t next = 1;
  for (const std::size_t d : order) {
    if (tensor.shape[d] == 1) continue;
    if (tensor.stride[d] != next) return false;
    next *= tensor.shape[d];
  }
  return !order.empty();
}

Dimensions channels_last_stride(const Dimensions& shape) {
  Dimensions stride(shape.size());
  std::int64_t next = 1;
  for (const std::size_t d : order_of_channels_last(shape)) {
    stride[d] = next;
    next *= shape[d];
  }
  return stride;
}

std::vector<std::int64_t> places_in_memory(const Tensor& tensor) {
  if (is_contiguous(tensor) || !has_no_gaps(tensor)) return {};
  std::vector<std::int64_t> places(static_cast<std::size_t>(tensor.count()));
  std::vector<std::int64_t> at(tensor.shape.size());
  std::int64_t place = 0;
  for (std::int64_t& own : places) {
    own = place;
    for (std::size_t d = at.size(); d-- > 0;) {
      if (tensor.shape[d] == 1) continue;
      place += tensor.stride[d];
      if (++at[d] < tensor.shape[d]) break;
      place -= tensor.stride[d] * tensor.shape[d];
      at[d] = 0;
    }
  }
  return places;
}

Tensor in_memory_order(const Tensor& tensor) {
  const std::vector<std::int64_t> places = places_in_memory(tensor);
  if (places.empty()) return tensor;
  const auto width = static_cast<std::size_t>(tensor.element_bytes());
  std::vector<std::byte> bytes(tensor.bytes.size());
  for (std::size_t i = 0; i < places.size(); ++i)
    std::ranges::copy(tensor.bytes.subspan(i * width, width),
                      bytes.begin() + places[i] * static_cast<std::ptrdiff_t>(width));
  Tensor result = tensor_of_bytes(tensor.type, {tensor.count()}, {1}, std::move(bytes));
  result.offset = tensor.offset;
  return result;
}

Tensor from_memory_order(const Tensor& like, const Tensor& written) {
  const std::vector<std::int64_t> places = places_in_memory(like);
  if (places.empty()) return written;
  const auto width = static_cast<std::size_t>(written.element_bytes());
  std::vector<std::byte> bytes(written.bytes.size());
  for (std::size_t i = 0; i < places.size(); ++i)
    std::ranges::copy(written.bytes.subspan(static_cast<std::size_t>(places[i]) * width, width),
                      bytes.begin() + static_cast<std::ptrdiff_t>(i * width));
  return tensor_of_bytes(written.type, written.shape, like.stride, std::move(bytes));
}

Dimensions stride_of_operands(const Dimensions& shape, std::span<const Dimensions> strides) {
  const auto slower = [&](std::size_t a, std::size_t b) {
    for (const Dimensions& stride : strides) {
      const int verdict = runs_slower(stride[a], stride[b], shape[a], shape[b]);
      if (verdict != 0) return verdict;
    }
    return 0;
  };
  Dimensions stride(shape.size());
  std::int64_t next = 1;
  for (const std::size_t d : iterated_order(shape.size(), slower)) {
    stride[d] = next;
    next *= std::max<std::int64_t>(shape[d], 1);
  }
  return stride;
}

Dimensions dense_stride_like(const Tensor& tensor) {
  return has_no_gaps(tensor) ? tensor.stride
                             : stride_of_operands(tensor.shape, std::array{tensor.stride});
}

Tensor from_iteration_order(const Tensor& like, const Tensor& written) {
  Tensor dense = like;
  dense.stride = stride_of_operands(like.shape, std::array{like.stride});
  return from_memory_order(dense, written);
}

}  // namespace guardbit::emulator::operators
