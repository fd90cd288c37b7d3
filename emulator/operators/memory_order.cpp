#include "emulator/operators/memory_order.hpp"

#include <algorithm>
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

}  // namespace guardbit::emulator::operators
